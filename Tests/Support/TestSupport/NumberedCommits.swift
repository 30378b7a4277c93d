package import DataStore

/// A kind of numbered commits, each of which is determined by its number.
///
/// The kind and the number of the last commit therefore determine the values that a test must find in the store.
package enum NumberedCommits: String, CaseIterable, Sendable {
  /// Each commit saves or removes one of three values.
  case values
  /// Each commit saves five values, but every third commit removes one of them instead of saving it.
  case batches
  /// Each commit changes one element of a partitioned value.
  case parts
  /// The commits take turns: one of each of the other kinds, one that changes a partitioned value and other values, and
  /// one that changes a single value.
  case mixed

  private enum Edit {
    case save(String)
    case remove(String)
    case changeElement
  }

  private func edits(of number: Int) -> [Edit] {
    switch self {
    case .values:
      let id = "\(number % 3)"
      return [number % 7 == 0 ? .remove(id) : .save(id)]
    case .batches:
      return (0..<5).map { number % 3 == 0 && number % 5 == $0 ? .remove("five-\($0)") : .save("five-\($0)") }
    case .parts: return [.changeElement]
    case .mixed:
      switch number % 5 {
      case 0: return NumberedCommits.values.edits(of: number)
      case 1: return NumberedCommits.batches.edits(of: number)
      case 2: return NumberedCommits.parts.edits(of: number)
      // The value "beside" is saved in the same commit as the document, and "before" in an earlier one.
      case 3: return [.changeElement, .save("beside"), .remove("before")]
      default: return number % 10 == 4 ? [.remove("beside")] : [.save("before")]
      }
    }
  }

  /// Makes the commit with the given number.
  package func make(_ number: Int, in store: any KeyValueStore) async throws(StoreError) {
    let edits = edits(of: number)
    guard edits.count == 1 else {
      var batch = StoreBatch()
      for edit in edits {
        switch edit {
        case .save(let id): batch.save(Self.value(number), for: Self.key(id))
        case .remove(let id): batch.remove(Self.key(id))
        case .changeElement: batch.save(try await Self.changedDocument(number, in: store), for: NumberedDocument.key)
        }
      }
      try await store.commit(batch)
      return
    }
    switch edits[0] {
    case .save(let id): try await store.save(Self.value(number), for: Self.key(id))
    case .remove(let id): try await store.remove(Self.key(id))
    case .changeElement: try await store.save(Self.changedDocument(number, in: store), for: NumberedDocument.key)
    }
  }

  /// Applies the commit with the given number to a model of the store.
  package func apply(_ number: Int, to state: inout State) {
    for edit in edits(of: number) {
      switch edit {
      case .save(let id): state.values[id] = Self.value(number)
      case .remove(let id): state.values[id] = nil
      case .changeElement:
        var document = state.document ?? NumberedDocument()
        document.change(number)
        state.document = document
      }
    }
  }

  /// The content of a store at one instant.
  package struct State: Hashable, Sendable, CustomStringConvertible {
    package var values: [String: [Int]] = [:]
    package var document: NumberedDocument?

    package init() {}

    /// A short description, which shows all numbers of a value only if they differ.
    package var description: String {
      let values = values.sorted { $0.key < $1.key }.map { id, value in
        "\(id): \(Set(value).count == 1 ? "\(value[0])" : "\(value)")"
      }
      return "[\(values.joined(separator: ", "))], \(document.map { "document \($0.head)" } ?? "no document")"
    }
  }

  /// The ids of all values that commits of any kind save.
  private static let ids = ["0", "1", "2", "before", "beside"] + (0..<5).map { "five-\($0)" }

  /// Reads all values with `observe` or with `load`.
  package static func read(_ store: any KeyValueStore, observing: Bool) async throws(StoreError) -> State {
    observing ? try await observe(store) : try await load(from: store)
  }

  /// Reads all values with `load`.
  package static func load(from store: any KeyValueStore) async throws(StoreError) -> State {
    var state = State()
    for id in ids { state.values[id] = try await store.load(key(id))?.value }
    state.document = try await store.load(NumberedDocument.key)?.value
    return state
  }

  /// Reads all values with `observe`.
  package static func observe(_ store: any KeyValueStore) async throws(StoreError) -> State {
    var state = State()
    for entry in try await store.observe(collection: collection, as: [Int].self).stored {
      state.values[entry.key.id ?? ""] = entry.stored.value
    }
    let documents = try await store.observe(
      collection: NumberedDocument.key.collection, as: NumberedDocument.self)
    state.document = documents.stored.first?.stored.value
    return state
  }

  private static let collection = "numbers"

  private static func key(_ id: String) -> StoreKey<[Int]> { StoreKey(collection, id: id) }

  /// Returns the value that a commit saves: its number, repeated so that a mixture of two values would be visible.
  private static func value(_ number: Int) -> [Int] { Array(repeating: number, count: 300) }

  private static func changedDocument(
    _ number: Int, in store: any KeyValueStore
  ) async throws(StoreError) -> NumberedDocument {
    var document = try await store.load(NumberedDocument.key)?.value ?? NumberedDocument()
    document.change(number)
    return document
  }
}

/// A partitioned value, each element of which holds the number of the commit that last changed it.
package struct NumberedDocument: PartitionedValue, Hashable {
  package private(set) var head: Int
  package private(set) var elements: [Int]

  package init() {
    self.init(head: 0, elements: Array(repeating: 0, count: 300))
  }

  package init(head: Int, elements: [Int]) {
    (self.head, self.elements) = (head, elements)
  }

  fileprivate mutating func change(_ number: Int) {
    head = number
    elements[number * 7 % elements.count] = number
  }

  fileprivate static let key = StoreKey<NumberedDocument>("document")
}
