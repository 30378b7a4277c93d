internal import DataStore
internal import Repository

/// What is known of one user's timeline: what is stored, the likes that lie over it, and how it is being loaded.
///
/// Pure: told what happens, it says what observers are to see.
struct MomentsTimeline {
  /// One load of many, so that one that was given up does not end the one that came after it.
  struct Load: Equatable {
    fileprivate let part: Part
    fileprivate let number: Int
  }

  /// What a load fetches.
  enum Part: Hashable, Sendable {
    case whole, newestPage, nextPage
  }

  private var stored: StoredValue<MomentsDetails>?
  private var edits = PendingEdits<MomentsDetails, MutationID>()
  private var likes: [MutationID: MomentLike] = [:]
  /// Those that no attempt was made to send yet, by this process or an earlier one.
  private var unsent: Set<MutationID> = []
  private var versions = VersionGuard()
  private var saves = OwnSaves()
  private var lastLoad = 0
  /// The newest load of each part that has not ended; an older one of the same part was given up.
  private var loads: [Part: Int] = [:]
  /// How the last load ended while another was under way, unless it was cancelled.
  private var outcome: Result<Void, MomentsRepoError>?
  private(set) var loadState = MomentsLoadState.idle
  // These follow from what is stored and the edits. They are kept, as most of what happens changes neither.
  private var loadedValue: LoadedValue<MomentsDetails>?
  /// The moments whose likes no stored timeline has yet, and whether they are liked.
  private(set) var pendingLikes: [String: Bool] = [:]
  private let apply: @Sendable (MomentLike, inout MomentsDetails) -> Void

  /// Creates a timeline of which nothing is known.
  ///
  /// - Parameter apply: What a like does to a timeline.
  init(apply: @escaping @Sendable (MomentLike, inout MomentsDetails) -> Void = { $0.apply(to: &$1) }) {
    self.apply = apply
  }

  /// What observers are to see: the stored timeline with all pending likes; nil when nothing is stored.
  var details: MomentsDetails? { loadedValue?.value }

  /// Whether a like lies over the timeline.
  func contains(_ id: MutationID) -> Bool { likes[id] != nil }

  // MARK: - The store

  /// A timeline was there when the store was first looked at.
  mutating func find(_ stored: StoredValue<MomentsDetails>) {
    saves.skip(upTo: stored.revision)
    show(stored)
  }

  /// A timeline was stored, by whomever.
  ///
  /// One that somebody else has stored may be newer than the reply to any request that is under way.
  mutating func receive(_ stored: StoredValue<MomentsDetails>) {
    let moment = versions.begin()
    if saves.arrived(stored.revision, at: moment) { versions.overtake(at: moment) }
    show(stored)
  }

  private mutating func show(_ stored: StoredValue<MomentsDetails>) {
    self.stored = stored
    edits.arrived(stored.revision)
    layEdits()
  }

  /// What was stored was removed.
  mutating func remove() {
    stored = nil
    loadedValue = nil
    loadState = loadState.isLoading ? .loading(previous: nil) : .idle
  }

  // MARK: - Likes

  /// Lays a like over the timeline that was just made.
  mutating func make(_ like: MomentLike, as id: MutationID) {
    unsent.insert(id)
    add(like, as: id)
  }

  /// Lays a like over the timeline that was made long ago.
  mutating func add(_ like: MomentLike, as id: MutationID) {
    let isThere = contains(id)
    addEdit(like, as: id)
    if isThere { return layEdits() }
    // On top of the others, which lie there already.
    pendingLikes[like.momentID] = like.isLiked
    guard var loaded = loadedValue else { return }
    apply(like, &loaded.value)
    loaded.isPending = true
    loadedValue = loaded
    loadState.receive(loaded)
  }

  private mutating func addEdit(_ like: MomentLike, as id: MutationID) {
    edits.add(id) { [apply] in apply(like, &$0) }
    likes[id] = like
  }

  /// Lays likes of an earlier process over the timeline, under those that were made before the queue was read.
  mutating func restore(_ entries: [MutationEntry<MomentLike>]) {
    let made = edits.ids
    for entry in entries { addEdit(entry.mutation, as: entry.id) }
    for id in made { if let like = likes[id] { addEdit(like, as: id) } }
    layEdits()
  }

  /// Takes a like back that the server refused.
  mutating func refuse(_ id: MutationID) {
    if edits.refuse(id) { layEdits() }
  }

  /// An attempt to send a like begins.
  ///
  /// - Returns: The ticket of the request, and whether this is the first attempt for sure. The reply to any other may
  ///   be the server's repetition of an earlier one, so nobody knows how old it is.
  mutating func beginSending(_ id: MutationID) -> (ticket: VersionGuard.Ticket, isFirstAttempt: Bool) {
    (versions.begin(), unsent.remove(id) != nil)
  }

  /// The server has a like, but no timeline that contains it is known: one that is asked for from now on will do.
  mutating func confirm(_ id: MutationID) {
    edits.confirm(id, at: versions.begin())
  }

  /// Whether a confirmed like still waits for a timeline that contains it.
  func needsFetch(_ id: MutationID) -> Bool { edits.idsThatNeedAFetch.contains(id) }

  /// Whether a timeline that contains a like is stored, so that the like lies over nothing but older ones.
  func isSaved(_ id: MutationID) -> Bool { edits.isSaved(id) }

  // MARK: - Requests

  /// A request begins.
  mutating func beginRequest() -> VersionGuard.Ticket { versions.begin() }

  /// Whether a reply whose turn to be stored has come may be: it is certainly newer than what was stored before.
  ///
  /// Then it is being stored, until ``endSaving(_:)``.
  ///
  /// - Parameters:
  ///   - ticket: The ticket of its request.
  ///   - moment: A ticket drawn when the reply arrived.
  mutating func beginSaving(_ ticket: VersionGuard.Ticket, arrivedAt moment: VersionGuard.Ticket) -> Bool {
    guard versions.accept(ticket, arrivedAt: moment) else { return false }
    saves.begin()
    return true
  }

  /// A reply is stored, or could not be.
  ///
  /// - Parameter revision: The revision it has in the store; nil where it could not be stored.
  mutating func endSaving(_ revision: UInt64?) {
    if let moment = saves.end(revision) { versions.overtake(at: moment) }
  }

  /// An accepted reply was stored.
  ///
  /// - Parameters:
  ///   - revision: The revision it has in the store.
  ///   - ticket: The ticket of its request.
  ///   - id: The like that it answers, if any.
  mutating func saved(_ revision: UInt64, requestedAt ticket: VersionGuard.Ticket, confirming id: MutationID?) {
    if let id { edits.confirm(id, savedAs: revision) }
    edits.saved(revision, requestedAt: ticket)
    // Those whose timeline has arrived before are gone.
    if edits.count < likes.count { layEdits() }
  }

  // MARK: - Loading

  /// A load begins.
  mutating func beginLoading(_ part: Part) -> Load {
    lastLoad += 1
    if loads.isEmpty { outcome = nil }
    loads[part] = lastLoad
    loadState.beginLoading()
    return Load(part: part, number: lastLoad)
  }

  /// A load has ended, without an error if it brought a timeline.
  ///
  /// The state tells of it when no other is under way.
  mutating func endLoading(_ load: Load, _ error: MomentsRepoError?) {
    guard loads[load.part] == load.number else { return }
    loads[load.part] = nil
    switch error {
    case nil: outcome = .success(())
    case .cancelled: break
    case let error?: outcome = .failure(error)
    }
    guard loads.isEmpty else { return }
    switch outcome {
    case .success: if let loadedValue { loadState.succeed(loadedValue) } else { loadState.cancel() }
    case .failure(let error): loadState.fail(error)
    case nil: loadState.cancel()
    }
  }

  /// Lays all edits over what is stored.
  private mutating func layEdits() {
    let ids = edits.ids
    if ids.count < likes.count {
      let remaining = Set(ids)
      likes = likes.filter { remaining.contains($0.key) }
      unsent.formIntersection(remaining)
    }
    pendingLikes = ids.reduce(into: [:]) { pending, id in
      if let like = likes[id] { pending[like.momentID] = like.isLiked }
    }
    guard let stored else { return }
    let loaded = LoadedValue(edits.value(over: stored.value), savedAt: stored.savedAt, isPending: !edits.isEmpty)
    loadedValue = loaded
    loadState.receive(loaded)
  }
}
