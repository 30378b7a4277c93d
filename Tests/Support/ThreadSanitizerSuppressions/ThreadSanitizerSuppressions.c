#include "ThreadSanitizerSuppressions.h"

// Called before the sanitizer is ready, so this must not be instrumented, which is why it is not written in Swift.
#if defined(__has_attribute) && __has_attribute(disable_sanitizer_instrumentation)
__attribute__((disable_sanitizer_instrumentation))
#endif
const char *__tsan_default_suppressions(void) {
  // A continuation that is resumed before its task has come to wait: the runtime orders the two by an atomic exchange,
  // which lies in a library that the sanitizer does not see. What it then reports is the compiler's own bookkeeping in
  // the frame of `withUnsafeContinuation`, as the top of the stack. Nothing of this package is ever the top frame
  // there, so no race of ours is hidden.
  return "race_top:withUnsafeContinuation\n";
}
