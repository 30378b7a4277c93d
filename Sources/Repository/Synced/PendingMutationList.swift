/// The mutations of one value that its base doesn't have yet, in the order in which they are applied.
///
/// - Complexity: O(1) amortised for each function, except ``uncertain``. Most mutations leave from the front.
struct PendingMutationList<Mutation> {
  typealias Timestamp = VersionBarriers.Timestamp

  /// How far the server is known to have a mutation.
  enum Phase {
    /// Not known to be at the server.
    ///
    /// `unknownSince` is the end of the last attempt, if its outcome is unknown and the base didn't show the mutation then:
    /// a value that is requested later and shows it proves that the server has it.
    case waiting(unknownSince: Timestamp?)
    case inFlight
    /// The server has it, and so does every value that is requested later.
    case confirmed(at: Timestamp)
  }

  struct Item {
    let id: MutationID
    let mutation: Mutation
    fileprivate(set) var phase: Phase
    /// Its place in the order: greater than that of all that were appended before.
    fileprivate(set) var place: UInt64 = 0

    init(id: MutationID, mutation: Mutation, phase: Phase) {
      (self.id, self.mutation, self.phase) = (id, mutation, phase)
    }

    /// Whether a value that is fetched may have it.
    fileprivate var isUncertain: Bool {
      switch phase {
      case .confirmed, .waiting(_?): true
      case .inFlight, .waiting(nil): false
      }
    }
  }

  private var items: [MutationID: Item] = [:]
  /// The ids in order; may name items that were removed.
  private var order: [MutationID] = []
  /// Where the first item is in the order.
  private var head = 0
  private var lastPlace: UInt64 = 0
  private var uncertainIDs: Set<MutationID> = []
  private(set) var confirmedCount = 0
  /// Counts the mutations that came and went.
  private(set) var version: UInt64 = 0

  var isEmpty: Bool { items.isEmpty }

  /// All items in order.
  var all: some Sequence<Item> { order[head...].lazy.compactMap { [items] in items[$0] } }

  subscript(id: MutationID) -> Item? { items[id] }

  /// The items that a fetched value may have, in order: confirmed ones, and those whose outcome is unknown.
  ///
  /// - Complexity: O(*k* log *k*) for *k* such items, of which a long queue has few.
  var uncertain: [Item] {
    if uncertainIDs.isEmpty { return [] }
    return uncertainIDs.compactMap { items[$0] }.sorted { $0.place < $1.place }
  }

  mutating func append(_ item: Item) {
    guard items[item.id] == nil else { return }
    lastPlace += 1
    var item = item
    item.place = lastPlace
    items[item.id] = item
    if item.isUncertain { uncertainIDs.insert(item.id) }
    order.append(item.id)
    version += 1
    if case .confirmed = item.phase { confirmedCount += 1 }
  }

  mutating func setPhase(_ phase: Phase, of id: MutationID) {
    guard let old = items[id]?.phase else { return }
    if case .confirmed = old { confirmedCount -= 1 }
    if case .confirmed = phase { confirmedCount += 1 }
    items[id]?.phase = phase
    if items[id]?.isUncertain ?? false { uncertainIDs.insert(id) } else { uncertainIDs.remove(id) }
  }

  @discardableResult
  mutating func remove(_ id: MutationID) -> Item? {
    guard let item = items.removeValue(forKey: id) else { return nil }
    version += 1
    uncertainIDs.remove(id)
    if case .confirmed = item.phase { confirmedCount -= 1 }
    while head < order.count, items[order[head]] == nil { head += 1 }
    // Moves the rest at most once for each item that was removed.
    if order.count > 2 * items.count + 32 {
      order = order[head...].filter { items[$0] != nil }
      head = 0
    }
    return item
  }
}
