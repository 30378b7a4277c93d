/// A `Sendable` wrapper for the address of memory for elements.
///
/// Unchecked, because the memory is reached through a pointer. The channel's lock, the subscriber's gate, an atomic
/// flag or a resumption ensures that only one thread at a time uses the memory. The elements themselves are `Sendable`.
@usableFromInline
struct ElementSlots<Element: Sendable>: @unchecked Sendable {
  let base: UnsafeMutablePointer<Element>
}
