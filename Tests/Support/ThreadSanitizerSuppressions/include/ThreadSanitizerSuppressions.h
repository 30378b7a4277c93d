/// Returns the suppressions of the thread sanitizer for the program that this target is linked into.
///
/// The sanitizer looks up this name and calls the function at startup.
///
/// - Returns: The suppressions in the sanitizer's format, one per line.
const char *__tsan_default_suppressions(void);
