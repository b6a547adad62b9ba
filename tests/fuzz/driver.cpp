// SPDX-License-Identifier: MIT
// A small mutation fuzzer for any compiler: it changes the target's own seeds and keeps going for a while. It is
// blind, unlike libFuzzer, but needs nothing and is deterministic but for how far it gets.
//   name_fuzz [-seconds=5 | -runs=1000] [-seed=1]
// Run it in a build with sanitizers; the input that broke something, or took for ever, is written to crash-input.
#include <sys/time.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>

#include "fuzz.hpp"

extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

namespace {

constexpr std::size_t kLongest = 1 << 16;
constexpr int kMostSeconds = 20;  // of this program's own time, for one input

std::string current;  // what the target is working on

void save_current() {
    std::ofstream("crash-input", std::ios::binary) << current;
    std::fprintf(stderr, "the input (%zu bytes) is in crash-input\n", current.size());
}

void on_signal(int signal) {
    if (signal == SIGVTALRM) std::fprintf(stderr, "an input takes longer than %d s\n", kMostSeconds);
    save_current();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

class Mutator {
public:
    Mutator(std::vector<std::string> seeds, std::uint64_t seed) : seeds_(std::move(seeds)), engine_(seed) {
        // The words of the seeds are the best guess at what the parser compares with.
        for (const std::string& text : seeds_) {
            std::string word;
            for (const char c : text + " ") {
                if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
                    word += c;
                } else if (!word.empty()) {
                    if (tokens_.size() < 4096) tokens_.push_back(word);
                    word.clear();
                }
            }
        }
        for (const char* token : {"",
                                  "0",
                                  "-1",
                                  "1",
                                  "65536",
                                  "65537",
                                  "2147483648",
                                  "9223372036854775807",
                                  "9223372036854775808",
                                  "-9223372036854775808",
                                  "1e999",
                                  "true",
                                  "null",
                                  "\"",
                                  "\\u",
                                  "\\",
                                  "{",
                                  "}",
                                  "[",
                                  "]",
                                  "[[[[[[[[",
                                  ":",
                                  ",",
                                  "=",
                                  "@",
                                  "x",
                                  "_",
                                  "-",
                                  "\n",
                                  " ",
                                  "none",
                                  "any",
                                  "*",
                                  "B"}) {
            tokens_.emplace_back(token);
        }
    }

    std::string next() {
        std::string text = pick(seeds_);
        // Few changes mostly: a text with many is refused early and shows little.
        for (std::size_t count = 1 + below(below(2) == 0 ? 2 : 8); count > 0; --count) mutate(text);
        if (text.size() > kLongest) text.resize(kLongest);
        return text;
    }

private:
    std::size_t below(std::size_t bound) { return bound == 0 ? 0 : engine_() % bound; }
    const std::string& pick(const std::vector<std::string>& list) { return list[below(list.size())]; }

    void mutate(std::string& text) {
        const std::size_t at = below(text.size() + 1), length = below(16);
        const std::string& other = pick(seeds_);
        switch (below(8)) {
            case 0:
                if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
                break;
            case 1:
                if (at < text.size()) text[at] = static_cast<char>(below(256));
                break;
            case 2: text.erase(at, length); break;
            case 3: text.resize(at); break;
            case 4: text.insert(at, pick(tokens_)); break;
            case 5: text.insert(at, text.substr(below(text.size() + 1), length * 4)); break;
            case 6: text = text.substr(0, at) + other.substr(below(other.size() + 1)); break;  // splice
            default: replace_word(text, at);
        }
    }

    // The word or number at the place becomes another.
    void replace_word(std::string& text, std::size_t at) {
        const auto in_word = [&](std::size_t i) { return std::isalnum(static_cast<unsigned char>(text[i])) != 0; };
        while (at < text.size() && !in_word(at)) ++at;
        std::size_t end = at;
        while (end < text.size() && in_word(end)) ++end;
        text.replace(at, end - at, pick(tokens_));
    }

    std::vector<std::string> seeds_;
    std::vector<std::string> tokens_;
    std::mt19937_64 engine_;
};

void run(std::string text) {
    current = std::move(text);
    // A copy of exactly its size, so that the address sanitizer sees a read beyond the end.
    const std::vector<std::uint8_t> exact(current.begin(), current.end());
    const itimerval limit = {{0, 0}, {kMostSeconds, 0}};
    setitimer(ITIMER_VIRTUAL, &limit, nullptr);
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
    double seconds = 5;
    std::uint64_t seed = 1, most_runs = 0;  // 0: as many as there is time for
    for (int i = 1; i < argc; ++i) {
        if (std::strncmp(argv[i], "-seconds=", 9) == 0) {
            seconds = std::atof(argv[i] + 9);
        } else if (std::strncmp(argv[i], "-runs=", 6) == 0) {
            most_runs = std::strtoull(argv[i] + 6, nullptr, 10);
        } else if (std::strncmp(argv[i], "-seed=", 6) == 0) {
            seed = std::strtoull(argv[i] + 6, nullptr, 10);
        } else {
            std::fprintf(stderr, "usage: %s [-seconds=5 | -runs=1000] [-seed=1]\n", argv[0]);
            return 2;
        }
    }
    for (const int signal : {SIGABRT, SIGFPE, SIGILL, SIGVTALRM}) std::signal(signal, on_signal);
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(save_current);

    const auto seeds = fuzz_seeds();
    for (const std::string& text : seeds) run(text);
    run("");
    Mutator mutator(seeds, seed);
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    std::uint64_t runs = seeds.size() + 1;
    while (most_runs > 0 ? runs < most_runs : runs % 16 != 0 || std::chrono::steady_clock::now() < end) {
        run(mutator.next());
        ++runs;
    }
    std::printf("%s: %llu runs, seed %llu\n", argv[0], static_cast<unsigned long long>(runs),
                static_cast<unsigned long long>(seed));
    return 0;
}
