// Convolutions of images that are stored with the batch last: [channels, height, width, images].
//
// An instruction works on the same pixel of 16 images, so few channels are no loss. Every result is summed by one
// thread in a fixed order: it does not depend on the number of threads.

#include <cstdint>
#include <cstring>

struct Convolution {
    int64_t inputs, height, width, outputs, out_height, out_width, images, size, stride, padding;
};

namespace {

constexpr int LANES = 16, MOST_TAPS = 9;
typedef float Vector __attribute__((vector_size(4 * LANES)));

inline Vector load(const float* from, int lanes = LANES) {
    Vector value = {};
    std::memcpy(&value, from, sizeof(float) * lanes);
    return value;
}

inline void store(float* to, Vector value, int lanes = LANES) { std::memcpy(to, &value, sizeof(float) * lanes); }

// A pixel of the source that a pixel of the target depends on, and the place of its weight.
struct Tap {
    int64_t source, weight;
};

template <int CHANNELS, int VECTORS, bool WHOLE>
void sum_taps(const float* source, int64_t source_channels, int64_t source_plane, const float* weights, int64_t source_step,
              int64_t target_step, const Tap* taps, int count, float* target, int64_t target_plane, int lanes) {
    Vector sums[CHANNELS][VECTORS] = {};
    for (int64_t channel = 0; channel < source_channels; ++channel)
        for (int t = 0; t < count; ++t) {
            const float* from = source + channel * source_plane + taps[t].source;
            const float* weight = weights + channel * source_step + taps[t].weight;
            Vector values[VECTORS];
            for (int v = 0; v < VECTORS; ++v) values[v] = WHOLE ? load(from + v * LANES) : load(from, lanes);
            for (int k = 0; k < CHANNELS; ++k)
                for (int v = 0; v < VECTORS; ++v) sums[k][v] += values[v] * weight[k * target_step];
        }
    for (int k = 0; k < CHANNELS; ++k)
        for (int v = 0; v < VECTORS; ++v) store(target + k * target_plane + v * LANES, sums[k][v], WHOLE ? LANES : lanes);
}

template <int CHANNELS>
void sum_images(const float* source, float* target, int64_t images, int64_t source_channels, int64_t source_plane,
                const float* weights, int64_t source_step, int64_t target_step, const Tap* taps, int count,
                int64_t target_plane) {
    int64_t n = 0;
    for (; n + 2 * LANES <= images; n += 2 * LANES)
        sum_taps<CHANNELS, 2, true>(source + n, source_channels, source_plane, weights, source_step, target_step, taps, count,
                                    target + n, target_plane, LANES);
    for (; n + LANES <= images; n += LANES)
        sum_taps<CHANNELS, 1, true>(source + n, source_channels, source_plane, weights, source_step, target_step, taps, count,
                                    target + n, target_plane, LANES);
    if (n < images)
        sum_taps<CHANNELS, 1, false>(source + n, source_channels, source_plane, weights, source_step, target_step, taps, count,
                                     target + n, target_plane, static_cast<int>(images - n));
}

// The gradients of some output channels by the weights of one input channel, from `images` at one pixel.
template <int SIZE, int CHANNELS, bool WHOLE>
inline void add_pixel(Vector (&sums)[CHANNELS][SIZE * SIZE], const float* from, int64_t row_step, int64_t column_step,
                      const float* gradient, int64_t plane, unsigned inside, int lanes) {
    Vector values[CHANNELS];
    for (int k = 0; k < CHANNELS; ++k) values[k] = WHOLE ? load(gradient + k * plane) : load(gradient + k * plane, lanes);
    for (int i = 0; i < SIZE; ++i)
        for (int j = 0; j < SIZE; ++j) {
            if (!(inside >> (i * SIZE + j) & 1)) continue;
            const float* pixel = from + i * row_step + j * column_step;
            const Vector value = WHOLE ? load(pixel) : load(pixel, lanes);
            for (int k = 0; k < CHANNELS; ++k) sums[k][i * SIZE + j] += values[k] * value;
        }
}

template <int SIZE, int CHANNELS>
void sum_pixels(const float* input, const float* gradient, float* result, int64_t result_step, const Convolution* c) {
    constexpr unsigned ALL = (1u << SIZE * SIZE) - 1;
    const int64_t plane = c->out_height * c->out_width * c->images, whole = c->images - c->images % LANES;
    Vector sums[CHANNELS][SIZE * SIZE] = {};
    for (int64_t row = 0; row < c->out_height; ++row)
        for (int64_t column = 0; column < c->out_width; ++column) {
            const int64_t top = row * c->stride - c->padding, left = column * c->stride - c->padding;
            const int64_t column_step = c->images, row_step = c->width * c->images;
            const float* from = input + top * row_step + left * column_step;
            const float* by = gradient + (row * c->out_width + column) * c->images;
            unsigned inside = 0;
            for (int i = 0; i < SIZE; ++i)
                for (int j = 0; j < SIZE; ++j)
                    if (top + i >= 0 && top + i < c->height && left + j >= 0 && left + j < c->width) inside |= 1u << (i * SIZE + j);
            if (inside == ALL)  // known to the compiler, which then leaves the sums in registers
                for (int64_t n = 0; n < whole; n += LANES)
                    add_pixel<SIZE, CHANNELS, true>(sums, from + n, row_step, column_step, by + n, plane, ALL, LANES);
            else
                for (int64_t n = 0; n < whole; n += LANES)
                    add_pixel<SIZE, CHANNELS, true>(sums, from + n, row_step, column_step, by + n, plane, inside, LANES);
            if (whole < c->images)
                add_pixel<SIZE, CHANNELS, false>(sums, from + whole, row_step, column_step, by + whole, plane, inside,
                                                 static_cast<int>(c->images - whole));
        }
    for (int k = 0; k < CHANNELS; ++k)
        for (int t = 0; t < SIZE * SIZE; ++t) {
            float sum = 0;
            for (int lane = 0; lane < LANES; ++lane) sum += sums[k][t][lane];
            result[k * result_step + t] = sum;
        }
}

}  // namespace

extern "C" {

// Rows `begin` to `end` of the outputs, or with `backward` of the gradient by the inputs.
void sum_rows(const float* source, const float* weights, float* target, const Convolution* c, int64_t backward, int64_t begin,
              int64_t end) {
    const int64_t taps = c->size * c->size, by_input = taps, by_output = c->inputs * taps;
    const int64_t height = backward ? c->out_height : c->height, width = backward ? c->out_width : c->width;
    const int64_t target_height = backward ? c->height : c->out_height, target_width = backward ? c->width : c->out_width;
    const int64_t from = backward ? c->outputs : c->inputs, to = backward ? c->inputs : c->outputs;
    const int64_t from_step = backward ? by_output : by_input, to_step = backward ? by_input : by_output;
    const int64_t plane = height * width * c->images, target_plane = target_height * target_width * c->images;
    for (int64_t row = begin; row < end; ++row)
        for (int64_t column = 0; column < target_width; ++column) {
            Tap found[MOST_TAPS];
            int count = 0;
            for (int64_t i = 0; i < c->size; ++i)
                for (int64_t j = 0; j < c->size; ++j) {
                    int64_t y = backward ? row + c->padding - i : row * c->stride - c->padding + i;
                    int64_t x = backward ? column + c->padding - j : column * c->stride - c->padding + j;
                    if (y < 0 || x < 0 || (backward && (y % c->stride || x % c->stride))) continue;
                    if (backward) y /= c->stride, x /= c->stride;
                    if (y < height && x < width) found[count++] = {(y * width + x) * c->images, i * c->size + j};
                }
            float* place = target + (row * target_width + column) * c->images;
            int64_t k = 0;
            for (; k + 4 <= to; k += 4)
                sum_images<4>(source, place + k * target_plane, c->images, from, plane, weights + k * to_step, from_step,
                              to_step, found, count, target_plane);
            for (; k < to; ++k)
                sum_images<1>(source, place + k * target_plane, c->images, from, plane, weights + k * to_step, from_step,
                              to_step, found, count, target_plane);
        }
}

// The gradient by the weights of the input channels `begin` to `end`.
void sum_weights(const float* inputs, const float* gradient, float* result, const Convolution* c, int64_t begin, int64_t end) {
    const int64_t taps = c->size * c->size, step = c->inputs * taps, plane = c->out_height * c->out_width * c->images;
    const auto two = c->size == 1 ? sum_pixels<1, 2> : sum_pixels<3, 2>;
    const auto one = c->size == 1 ? sum_pixels<1, 1> : sum_pixels<3, 1>;
    for (int64_t input = begin; input < end; ++input)
        for (int64_t output = 0; output < c->outputs; output += 2)
            (output + 1 < c->outputs ? two : one)(inputs + input * c->height * c->width * c->images, gradient + output * plane,
                                                  result + output * step + input * taps, step, c);
}
}
