/// The mutations that the base of one key doesn't include yet, in the order in which they are applied; see
/// ``SyncState``.
///
/// - Complexity: O(1) amortized for each operation, except ``confirmed`` and iteration.
struct PendingMutationList<Mutation> {
  typealias Timestamp = VersionBarriers.Timestamp

  /// The progress of a mutation, as far as this process knows it.
  enum Phase {
    /// The mutation isn't known to have reached the server.
    ///
    /// No fetched value proves that it has. A value that shows the change may show somebody else's, and a request that
    /// is late may still arrive.
    case waiting
    /// An attempt is in flight, or another repository sends the mutation.
    case inFlight
    /// The server has the mutation, and every value that is requested after `at` includes it.
    case confirmed(at: Timestamp)
  }

  struct Item {
    let id: MutationID
    let mutation: Mutation
    fileprivate(set) var phase: Phase
    /// The mutation's place in the order, greater than the place of every mutation that was appended before.
    fileprivate(set) var place: UInt64 = 0

    init(id: MutationID, mutation: Mutation, phase: Phase) {
      (self.id, self.mutation, self.phase) = (id, mutation, phase)
    }
  }

  /// An item's id and place, as they were when it was appended.
  private struct OrderEntry {
    let id: MutationID
    /// Tells the item from a removed one of the same id: a mutation that is sent again keeps its id.
    let place: UInt64
  }

  private var items: [MutationID: Item] = [:]
  /// The items in order, possibly including removed ones.
  private var order: [OrderEntry] = []
  /// The index of the first item in `order`.
  ///
  /// Most mutations are removed from the front, which only advances this index.
  private var head = 0
  private var lastPlace: UInt64 = 0
  private var confirmedIDs: Set<MutationID> = []
  /// The number of additions and removals.
  private(set) var version: UInt64 = 0

  var isEmpty: Bool { items.isEmpty }

  /// All items in order.
  var all: some Sequence<Item> { order[head...].lazy.compactMap { [items] in Self.item(of: $0, in: items) } }

  /// Returns the item of an entry, or `nil` if the item was removed.
  private static func item(of entry: OrderEntry, in items: [MutationID: Item]) -> Item? {
    guard let item = items[entry.id], item.place == entry.place else { return nil }
    return item
  }

  subscript(id: MutationID) -> Item? { items[id] }

  var confirmedCount: Int { confirmedIDs.count }

  /// The confirmed items in order, which a fetched value can end by including them.
  ///
  /// - Complexity: O(*k* log *k*), where *k* is the number of such items. Even a long queue usually has few.
  var confirmed: [Item] {
    if confirmedIDs.isEmpty { return [] }
    return confirmedIDs.compactMap { items[$0] }.sorted { $0.place < $1.place }
  }

  mutating func append(_ item: Item) {
    guard items[item.id] == nil else { return }
    lastPlace += 1
    var item = item
    item.place = lastPlace
    items[item.id] = item
    if case .confirmed = item.phase { confirmedIDs.insert(item.id) }
    order.append(OrderEntry(id: item.id, place: item.place))
    version += 1
  }

  mutating func setPhase(_ phase: Phase, of id: MutationID) {
    guard items[id] != nil else { return }
    items[id]?.phase = phase
    if case .confirmed = phase { confirmedIDs.insert(id) } else { confirmedIDs.remove(id) }
  }

  @discardableResult
  mutating func remove(_ id: MutationID) -> Item? {
    guard let item = items.removeValue(forKey: id) else { return nil }
    version += 1
    confirmedIDs.remove(id)
    while head < order.count, Self.item(of: order[head], in: items) == nil { head += 1 }
    // Compacts the order once most of its entries are those of removed items, unless it is short. On average, that
    // moves at most one entry for each removed item.
    if order.count > 2 * items.count + 32 {
      order = order[head...].filter { Self.item(of: $0, in: items) != nil }
      head = 0
    }
    return item
  }
}
