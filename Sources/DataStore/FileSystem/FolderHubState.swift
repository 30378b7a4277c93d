/// A pure state machine that maps the watches of a ``FolderHub`` to descriptors, and events to watches.
///
/// Several watches may share a descriptor, because the system returns the same one for the same folder. So an event
/// goes to every watch of its descriptor, and a descriptor becomes unused when its last watch leaves it.
struct FolderHubState {
  /// Identifies a watch; a hub never uses the same ID for another watch.
  struct WatchID: Hashable, Comparable, Sendable {
    private let number: Int

    fileprivate init(number: Int) {
      self.number = number
    }

    static func < (first: Self, second: Self) -> Bool {
      first.number < second.number
    }
  }

  /// An event of one descriptor, or of all descriptors.
  struct Event: Hashable, Sendable {
    /// `nil` if the event concerns every watch.
    let descriptor: WatchDescriptor?
    let folderEvent: FolderEvent
  }

  private var watches: [WatchID: FolderWatchState] = [:]
  /// The watches of each descriptor in use; no set is empty.
  private var watchIDs: [WatchDescriptor: Set<WatchID>] = [:]
  /// The watches whose state may have changed since the last call of ``takeReports()``, and those whose folders must be
  /// found again.
  private var touched: Set<WatchID> = []
  /// The number of the newest ID.
  private var lastNumber = 0

  /// Whether no descriptor is in use.
  var isIdle: Bool { watchIDs.isEmpty }

  /// The watches whose folders must be found again, in the order in which they started.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of watches whose state may have changed since the last call
  ///   of ``takeReports()``.
  var watchesThatMustFindFolder: [WatchID] {
    touched.filter { watches[$0]?.mustFindFolder == true }.sorted()
  }

  /// Returns the target of a watch, or `nil` if the watch has failed or was removed.
  func target(of id: WatchID) -> FolderWatchState.Target? {
    watches[id]?.target
  }

  /// Returns whether any watch uses a descriptor.
  func isUsed(_ descriptor: WatchDescriptor) -> Bool {
    watchIDs[descriptor] != nil
  }

  /// Adds a watch.
  mutating func add(_ watch: FolderWatchState) -> WatchID {
    lastNumber += 1
    let id = WatchID(number: lastNumber)
    watches[id] = watch
    if let target = watch.target { watchIDs[target.descriptor, default: []].insert(id) }
    return id
  }

  /// Removes a watch.
  ///
  /// - Returns: The descriptor that became unused, if any.
  mutating func remove(_ id: WatchID) -> WatchDescriptor? {
    touched.remove(id)
    return update(id) { $0 = nil }
  }

  /// Records an event for the watches that it concerns.
  ///
  /// - Complexity: O(*n*), where *n* is the number of watches that share the event's descriptor, or of all watches if
  ///   the descriptor is `nil`.
  mutating func record(_ event: Event) {
    let ids = if let descriptor = event.descriptor { watchIDs[descriptor] ?? [] } else { Set(watches.keys) }
    for id in ids { watches[id]?.record(event.folderEvent) }
    touched.formUnion(ids)
  }

  /// Records the target that was found for a watch after an event.
  ///
  /// - Returns: The descriptor that became unused, if any.
  mutating func found(_ target: FolderWatchState.Target, by id: WatchID) -> WatchDescriptor? {
    update(id) { $0?.found(target) }
  }

  /// Records the target that was found for a watch by a check, which no event requested.
  ///
  /// - Returns: The descriptor that became unused, if any.
  mutating func checked(_ target: FolderWatchState.Target, by id: WatchID) -> WatchDescriptor? {
    update(id) { $0?.checked(target) }
  }

  /// Records that a check of a watch failed, which gives the watch nothing to report.
  mutating func couldNotCheck(_ id: WatchID) {
    watches[id]?.couldNotCheck()
  }

  /// Records an error that ends a watch.
  ///
  /// - Returns: The descriptor that became unused, if any.
  mutating func fail(_ id: WatchID, with error: SystemError) -> WatchDescriptor? {
    update(id) { $0?.fail(with: error) }
  }

  /// Returns the watches whose changes or failure must be reported now, in the order in which the watches started.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of watches whose state may have changed since the last call.
  mutating func takeReports() -> [WatchID] {
    defer { touched = touched.filter { watches[$0]?.mustFindFolder == true } }
    return touched.sorted().filter { watches[$0]?.takeReport() == true }
  }

  /// Returns the names of the files that changed for a watch since the last call, or `nil` if any file may have
  /// changed.
  mutating func takeChangedFiles(of id: WatchID) -> Result<[String]?, SystemError> {
    watches[id]?.takeChangedFiles() ?? .success([])
  }

  /// Changes or removes a watch, and updates which descriptors are in use.
  ///
  /// - Returns: The descriptor that became unused, if any.
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
