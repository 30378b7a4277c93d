/// A pure state machine of all watches of a ``FolderHub``: which descriptors they watch, and which events they get.
///
/// Several watches may share a descriptor, because the system gives out the same one for the same folder. So an event
/// goes to every watch of its descriptor, and a descriptor is unused only once the last of them has left it.
struct FolderHubState {
  /// Identifies a watch, and is never used again for another one of the same hub.
  struct WatchID: Hashable, Comparable, Sendable {
    private let number: Int

    fileprivate init(number: Int) {
      self.number = number
    }

    static func < (first: Self, second: Self) -> Bool {
      first.number < second.number
    }
  }

  /// An event of one descriptor, or of all.
  struct Event: Hashable, Sendable {
    /// `nil` if the event concerns every watch.
    let descriptor: WatchDescriptor?
    let folderEvent: FolderEvent
  }

  private var watches: [WatchID: FolderWatchState] = [:]
  /// The watches of each descriptor that is in use; none is empty.
  private var watchIDs: [WatchDescriptor: Set<WatchID>] = [:]
  /// The watches to which something happened since their reports were taken, or whose folders must be found.
  private var touched: Set<WatchID> = []
  private var watchCount = 0

  /// Whether no descriptor is in use.
  var isIdle: Bool { watchIDs.isEmpty }

  /// The watches whose folders must be found again, in the order they began.
  var watchesToFind: [WatchID] {
    touched.filter { watches[$0]?.mustFindFolder == true }.sorted()
  }

  /// What a watch watches; `nil` once it has failed.
  func target(of id: WatchID) -> FolderWatchState.Target? {
    watches[id]?.target
  }

  /// Whether any watch uses a descriptor.
  func isUsed(_ descriptor: WatchDescriptor) -> Bool {
    watchIDs[descriptor] != nil
  }

  /// Adds a watch.
  mutating func add(_ watch: FolderWatchState) -> WatchID {
    watchCount += 1
    let id = WatchID(number: watchCount)
    watches[id] = watch
    if let target = watch.target { watchIDs[target.descriptor, default: []].insert(id) }
    return id
  }

  /// Removes a watch.
  ///
  /// - Returns: The descriptor that is unused from now on, if any.
  mutating func remove(_ id: WatchID) -> WatchDescriptor? {
    touched.remove(id)
    return update(id) { $0 = nil }
  }

  /// Records an event for the watches it concerns.
  ///
  /// - Complexity: O(*n*), where *n* is the number of watches that share the descriptor.
  mutating func record(_ event: Event) {
    let ids = if let descriptor = event.descriptor { watchIDs[descriptor] ?? [] } else { Set(watches.keys) }
    for id in ids { watches[id]?.record(event.folderEvent) }
    touched.formUnion(ids)
  }

  /// Records what a watch watches after an event.
  ///
  /// - Returns: The descriptor that is unused from now on, if any.
  mutating func found(_ target: FolderWatchState.Target, by id: WatchID) -> WatchDescriptor? {
    update(id) { $0?.found(target) }
  }

  /// Records what a watch watches after a check that no event asked for.
  ///
  /// - Returns: The descriptor that is unused from now on, if any.
  mutating func checked(_ target: FolderWatchState.Target, by id: WatchID) -> WatchDescriptor? {
    update(id) { $0?.checked(target) }
  }

  /// Records that a check failed.
  mutating func couldNotCheck(_ id: WatchID) {
    watches[id]?.couldNotCheck()
  }

  /// Records what ends a watch.
  ///
  /// - Returns: The descriptor that is unused from now on, if any.
  mutating func fail(_ id: WatchID, with error: SystemError) -> WatchDescriptor? {
    update(id) { $0?.fail(with: error) }
  }

  /// Returns the watches that have something to take which wasn't reported before, in the order they began.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of watches to which something happened since the last call.
  mutating func takeReports() -> [WatchID] {
    defer { touched = touched.filter { watches[$0]?.mustFindFolder == true } }
    return touched.sorted().filter { watches[$0]?.takeReport() == true }
  }

  /// Returns the names of the files that changed for a watch since the last call, or `nil` if any may have changed.
  mutating func takeChangedFiles(of id: WatchID) -> Result<[String]?, SystemError> {
    watches[id]?.takeChangedFiles() ?? .success([])
  }

  /// Changes a watch, and which descriptor it uses.
  ///
  /// - Returns: The descriptor that is unused from now on, if any.
  private mutating func update(_ id: WatchID, _ change: (inout FolderWatchState?) -> Void) -> WatchDescriptor? {
    let old = watches[id]?.target?.descriptor
    change(&watches[id])
    if watches[id] != nil { touched.insert(id) }
    let new = watches[id]?.target?.descriptor
    if old == new { return nil }
    if let new { watchIDs[new, default: []].insert(id) }
    guard let old else { return nil }
    watchIDs[old]?.remove(id)
    guard watchIDs[old]?.isEmpty == true else { return nil }
    watchIDs[old] = nil
    return old
  }
}
