/// Uninitialised memory for elements, on its way to the code that fills it.
///
/// It may cross threads because it is only an address: one party at a time uses it, the one that a lock, a gate or a
/// resumption made the next, and the elements themselves are `Sendable`.
@usableFromInline
struct ElementSlots<Element: Sendable>: @unchecked Sendable {
  let base: UnsafeMutablePointer<Element>
}
