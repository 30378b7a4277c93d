/// What the thread sanitizer does not report in the program this is linked into: it asks for it by this name at the start.
///
/// - Returns: Suppressions in the sanitizer's own form, a line each.
const char *__tsan_default_suppressions(void);
