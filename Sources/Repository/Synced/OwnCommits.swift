internal import DataStore
internal import Multicast

/// Makes the commits of a repository, and waits until the repository has applied each of them.
///
/// The feed of the store shows a commit before the call that makes it returns, but the engine may not have applied it
/// by then. A call that has failed may have made its commit nevertheless; the feed then tells.
final class OwnCommits: Sendable {
  /// What the engine does with a commit.
  enum Kind {
    /// The engine knows its changes already, which include the first records of some mutations.
    case known(adding: Set<MutationID>)
    /// The commit was decided on another state than that of the engine, so its changes are applied as those of others.
    case external
  }

  private struct Commit {
    let kind: Kind
    /// The commit as the store has returned it, or as the feed has shown it.
    var made: StoreCommit?
    var isApplied = false
    /// Whether the call has failed, and the store could not be asked whether it was made.
    var isUnknown = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private struct State {
    var commits: [StoreTag: Commit] = [:]
    /// Whether no more commits are applied, because the repository is released.
    var hasEnded = false
    var catchUp: CatchUp = { _ in }
  }

  /// Applies all commits that were made before the call; with `isRepeated`, until that succeeds or isn't needed anymore.
  typealias CatchUp = @Sendable (_ isRepeated: Bool) async throws(StoreError) -> Void

  private let store: any KeyValueStore
  private let state = Lock(State())

  init(_ store: any KeyValueStore) {
    self.store = store
  }

  func begin(catchingUp catchUp: @escaping CatchUp) {
    state.withLock { $0.catchUp = catchUp }
  }

  /// Ends all waits, now and later.
  func end() {
    let waiters = state.withLock { state in
      state.hasEnded = true
      return state.commits.keys.compactMap { state.commits[$0]?.waiter.take() }
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Makes a commit, and waits until the engine has applied it.
  ///
  /// - Throws: The error of the store, unless the feed shows that the commit was made.
  func commit(_ batch: StoreBatch, as kind: Kind = .known(adding: [])) async throws(StoreError) -> StoreCommit {
    let tag = batch.tag
    state.withLock { $0.commits[tag] = Commit(kind: kind) }
    do throws(StoreError) {
      let commit = try await store.commit(batch)
      state.withLock { $0.commits[tag]?.made = commit }
      await waitUntilApplied(tag)
      forget(tag)
      return commit
    } catch {
      // The outcome of some calls is unknown. Until the store can be read again, the feed may still show the commit.
      if error.isCertain {
        forget(tag)
      } else if await hasCaughtUp(isRepeated: false) {
        if let commit = forget(tag), commit.isApplied, let made = commit.made { return made }
      } else {
        state.withLock { $0.commits[tag]?.isUnknown = true }
      }
      throw error
    }
  }

  private func hasCaughtUp(isRepeated: Bool) async -> Bool {
    let catchUp = state.withLock { $0.catchUp }
    do throws(StoreError) {
      try await catchUp(isRepeated)
      return true
    } catch {
      // The caller has an error of its own.
      return false
    }
  }

  @discardableResult
  private func forget(_ tag: StoreTag) -> Commit? {
    state.withLock { $0.commits.removeValue(forKey: tag) }
  }

  private func waitUntilApplied(_ tag: StoreTag) async {
    // The changes of the commit come one by one, and without its tag.
    if !store.feedIsWhole { _ = await hasCaughtUp(isRepeated: true) }
    await withCheckedContinuation { continuation in
      let isApplied = state.withLock { state in
        guard !state.hasEnded, var commit = state.commits[tag], !commit.isApplied else { return true }
        commit.waiter = continuation
        state.commits[tag] = commit
        return false
      }
      if isApplied { continuation.resume() }
    }
  }

  // MARK: - Unknown outcomes

  /// The commits of which it isn't known whether they were made.
  var unknown: [StoreTag] { state.withLock { state in state.commits.filter { $0.value.isUnknown }.map(\.key) } }

  /// Forgets commits, because the feed has caught up since, so none of them can be made anymore.
  func forget(_ unknown: [StoreTag]) {
    for tag in unknown { forget(tag) }
  }

  // MARK: - Applying

  /// What the engine does with the commit of a tag; `nil` unless the repository makes that commit.
  func kind(of tag: StoreTag) -> Kind? { state.withLock { $0.commits[tag]?.kind } }

  /// The commits that the store has made and the engine hasn't applied, by revision.
  var unapplied: [StoreCommit] {
    state.withLock { state in state.commits.values.filter { !$0.isApplied }.compactMap(\.made) }
      .sorted { $0.revision < $1.revision }
  }

  /// Records that the engine has applied a commit.
  func recordApplication(of commit: StoreCommit) {
    let waiter = state.withLock { state in
      state.commits[commit.tag]?.isApplied = true
      state.commits[commit.tag]?.made = commit
      return state.commits[commit.tag]?.waiter.take()
    }
    waiter?.resume()
  }
}

extension StoreError {
  /// Whether a commit with this error was certainly not made.
  fileprivate var isCertain: Bool {
    switch self {
    case .preconditionFailed, .encodingFailed, .invalidKey, .collectionHasAnotherType, .newerFormat: true
    default: false
    }
  }
}
