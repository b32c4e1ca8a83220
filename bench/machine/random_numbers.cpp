// The numbers of torch's generator on a CPU, with the same bits, in loops that use the vectors of the processor.
//
// The generator is the Mersenne twister MT19937 (Matsumoto and Nishimura 1998). Normal numbers are those of Box and
// Muller (1958) from 16 uniform ones, with the single-precision logarithm, sine and cosine of the Cephes library
// (Moshier). Every product that is added to something is fused with that sum, as torch's compiled code does it; so this
// file is compiled without contractions of the compiler's own.

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr int WORDS = 624, AHEAD = 397, BLOCK = 16, HALF = BLOCK / 2;

// The beginning of what torch.Generator.get_state() returns.
struct State {
    uint64_t seed;
    int32_t left, seeded;  // words that are left before the next turn, and one more
    uint64_t next, words[WORDS];
};

inline uint32_t twisted(uint32_t one, uint32_t other) {
    return (((one & 0x80000000u) | (other & 0x7fffffffu)) >> 1) ^ (-(other & 1u) & 0x9908b0dfu);
}

void turn(uint32_t* words) {
    for (int i = 0; i < WORDS - AHEAD; ++i) words[i] = words[i + AHEAD] ^ twisted(words[i], words[i + 1]);
    // What is read was written at least 227 words before: more than a vector has.
#pragma GCC ivdep
    for (int i = WORDS - AHEAD; i < WORDS - 1; ++i)
        words[i] = words[i + AHEAD - WORDS] ^ twisted(words[i], words[i + 1]);
    words[WORDS - 1] = words[AHEAD - 1] ^ twisted(words[WORDS - 1], words[0]);
}

inline float uniform(uint32_t word) {
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c5680u;
    word ^= (word << 15) & 0xefc60000u;
    word ^= word >> 18;
    return static_cast<float>(static_cast<int32_t>(word & 0xffffffu)) * (1.0f / 16777216.0f);
}

class Twister {
  public:
    explicit Twister(uint8_t* bytes) : bytes_(bytes) {
        std::memcpy(&state_, bytes, sizeof(State));
        for (int i = 0; i < WORDS; ++i) words_[i] = static_cast<uint32_t>(state_.words[i]);
    }

    ~Twister() {
        for (int i = 0; i < WORDS; ++i) state_.words[i] = words_[i];
        std::memcpy(bytes_, &state_, sizeof(State));
    }

    void fill(float* numbers, int64_t count) {
        while (count > 0) {
            if (state_.left == 1) {
                turn(words_);
                state_.left = WORDS + 1;
                state_.next = 0;
            }
            const int64_t here = count < state_.left - 1 ? count : state_.left - 1;
            const uint32_t* from = words_ + state_.next;
            for (int64_t i = 0; i < here; ++i) numbers[i] = uniform(from[i]);
            numbers += here;
            count -= here;
            state_.next += here;
            state_.left -= static_cast<int32_t>(here);
        }
    }

  private:
    uint8_t* bytes_;
    State state_;
    alignas(64) uint32_t words_[WORDS];
};

inline float as_float(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint32_t as_bits(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Of a positive normal number: x = 2^e (1 + m), with m between sqrt(1/2) - 1 and sqrt(2) - 1.
inline float logarithm(float x) {
    const uint32_t bits = as_bits(x);
    const float mantissa = as_float((bits & 0x807fffffu) | 0x3f000000u);
    const bool low = mantissa < 0.707106781186547524f;
    const float e = (static_cast<float>(static_cast<int32_t>(bits >> 23) - 127) + 1.0f) - (low ? 1.0f : 0.0f);
    const float m = (mantissa - 1.0f) + (low ? mantissa : 0.0f);
    const float square = m * m;
    float y = std::fma(7.0376836292e-2f, m, -1.1514610310e-1f);
    y = std::fma(y, m, 1.1676998740e-1f);
    y = std::fma(y, m, -1.2420140846e-1f);
    y = std::fma(y, m, 1.4249322787e-1f);
    y = std::fma(y, m, -1.6668057665e-1f);
    y = std::fma(y, m, 2.0000714765e-1f);
    y = std::fma(y, m, -2.4999993993e-1f);
    y = std::fma(y, m, 3.3333331174e-1f);
    y = std::fma(y * m, square, e * -2.12194440e-4f);
    y = std::fma(-square, 0.5f, y);
    return std::fma(e, 0.693359375f, m + y);
}

// Of an angle from 0 to 2 pi: what is left of the nearest multiple of pi/2, and polynomials of it.
inline void sine_and_cosine(float x, float& sine, float& cosine) {
    const int32_t octant = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
    const float y = static_cast<float>(octant);
    x = std::fma(y, -0.78515625f, x);
    x = std::fma(y, -2.4187564849853515625e-4f, x);
    x = std::fma(y, -3.77489497744594108e-8f, x);
    const float square = x * x;
    float of_cosine = std::fma(2.443315711809948e-5f, square, -1.388731625493765e-3f);
    of_cosine = std::fma(of_cosine, square, 4.166664568298827e-2f) * square;
    of_cosine = std::fma(of_cosine, square, -(square * 0.5f)) + 1.0f;
    float of_sine = std::fma(-1.9515295891e-4f, square, 8.3321608736e-3f);
    of_sine = std::fma(of_sine, square, -1.6666654611e-1f) * square;
    of_sine = std::fma(of_sine, x, x);
    const bool same = (octant & 2) == 0;
    const uint32_t sign_of_sine = (static_cast<uint32_t>(octant) & 4u) << 29;
    const uint32_t sign_of_cosine = (~static_cast<uint32_t>(octant - 2) & 4u) << 29;
    sine = as_float(as_bits(same ? of_sine : of_cosine) ^ sign_of_sine);
    cosine = as_float(as_bits(same ? of_cosine : of_sine) ^ sign_of_cosine);
}

void make_normal(float* block) {
    float first[HALF], second[HALF];
    for (int i = 0; i < HALF; ++i) {
        const float radius = std::sqrt(-2.0f * logarithm(1.0f - block[i]));
        float sine, cosine;
        sine_and_cosine(6.283185307179586f * block[i + HALF], sine, cosine);
        first[i] = radius * cosine;
        second[i] = radius * sine;
    }
    std::memcpy(block, first, sizeof first);
    std::memcpy(block + HALF, second, sizeof second);
}

}  // namespace

extern "C" {

void uniforms(uint8_t* state, float* numbers, int64_t count) { Twister(state).fill(numbers, count); }

// At least 16 numbers. Where they are no multiple of 16, the last 16 are drawn once more.
void normals(uint8_t* state, float* numbers, int64_t count) {
    Twister source(state);
    source.fill(numbers, count);
    for (int64_t i = 0; i + BLOCK <= count; i += BLOCK) make_normal(numbers + i);
    if (count % BLOCK) {
        source.fill(numbers + count - BLOCK, BLOCK);
        make_normal(numbers + count - BLOCK);
    }
}
}
