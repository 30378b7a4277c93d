/// The result of reconciling a read with the last known state.
struct Reconciled<Value: Codable & Sendable> {
  /// The stored value; `nil` if there is no usable one, or if it is unchanged and the read's caller didn't need it.
  let stored: StoredValue<Value>?
  /// Whether the read has found an unusable or unreadable value other than the last known one.
  ///
  /// Observers don't receive such a value.
  let hidesNewValue: Bool

  init(_ result: ReadResult<Value>, _ action: TopicState.Action) {
    switch (action, result) {
    case (.keep(let revision), .value(let edition, let content)),
      (.sendSaved(let revision), .value(let edition, let content)):
      stored = StoredValue(content, edition, revision: revision)
    default: stored = nil
    }
    hidesNewValue = action == .hide(isNew: true)
  }
}
