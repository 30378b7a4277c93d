#include "ThreadSanitizerSuppressions.h"

// This function must not be instrumented, because it is called before the sanitizer is ready. For that reason it is
// written in C.
#if defined(__has_attribute) && __has_attribute(disable_sanitizer_instrumentation)
__attribute__((disable_sanitizer_instrumentation))
#endif
const char *__tsan_default_suppressions(void) {
  // Suppresses a false report for a continuation that is resumed before its task suspends. The runtime orders the two
  // with an atomic exchange in a library that isn't instrumented. The sanitizer therefore reports a race in the
  // compiler's own bookkeeping, with `withUnsafeContinuation` as the top frame of the stack. That frame is never code of
  // this package, so the suppression hides no race of the package.
  return "race_top:withUnsafeContinuation\n";
}
