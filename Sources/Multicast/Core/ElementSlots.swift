/// The address of uninitialized memory for elements, which is passed to the code that initializes it.
///
/// Unchecked, because the memory is reached through a pointer. Only one thread at a time uses the memory, ordered by a
/// lock, a gate or a resumption, and the elements themselves are `Sendable`.
@usableFromInline
struct ElementSlots<Element: Sendable>: @unchecked Sendable {
  let base: UnsafeMutablePointer<Element>
}
