/// What a read meant.
struct Reconciled<Value: Codable & Sendable> {
  /// The stored value; `nil` if there is none to show.
  let stored: StoredValue<Value>?
  /// Whether something that can't be shown was found for the first time.
  let isNew: Bool

  init(_ result: ReadResult<Value>, _ action: TopicState.Action) {
    switch (action, result) {
    case (.keep(let revision), .value(let edition, let content)),
      (.sendSaved(let revision), .value(let edition, let content)):
      stored = StoredValue(content, edition, revision: revision)
    default: stored = nil
    }
    isNew = action == .hide(isNew: true)
  }
}
