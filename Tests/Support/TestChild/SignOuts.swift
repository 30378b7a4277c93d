internal import DataStore
internal import Foundation
internal import Multicast
internal import Repository
internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Commands that sign a user out in a process that may be killed at any time.
///
/// There are two users, Jake and Mary. Each has a stored value and pending mutations of it, all of which contain the
/// user's name.
extension TestChild {
  private typealias WordsRepository = SyncedRepository<WordsSource>

  /// The key of a user's words.
  private struct WordsKey: RepositoryKey {
    let storeID: String

    var userID: String? { storeID }

    init?(storeID: String) { self.storeID = storeID }

    static let all = ["jake", "mary"].compactMap { WordsKey(storeID: $0) }
  }

  private struct Word: RepositoryMutation {
    let text: String

    func apply(to words: inout [String]) { words.append(text) }
  }

  /// A source that can't send any mutation, so that all mutations stay pending.
  private struct WordsSource: MutableSource {
    struct Failure: Error {}

    let name = "words"

    func fetch(_ key: WordsKey) async throws(Failure) -> [String] { ["\(key.storeID)'s"] }

    func send(_ word: Word, to key: WordsKey, id: MutationID) async throws(Failure) -> MutationReply<[String]> {
      throw Failure()
    }

    func disposition(of failure: Failure) -> FailureDisposition { .retryLater() }
  }

  /// The part of a user's record that shows whether the user is being signed out.
  private struct UserPhase: Codable {
    let phase: String
  }

  private static func makeRepository(in store: any KeyValueStore) -> WordsRepository {
    WordsRepository(WordsSource(), store: store, configuration: RepositoryConfiguration())
  }

  /// Stores the values and the pending mutations of both users.
  static func keepWords(in place: URL) async throws {
    let repository = makeRepository(in: open(place))
    for key in WordsKey.all {
      try await repository.reload(key)
      for number in 1...2 { try await repository.perform(Word(text: "\(key.storeID)'s \(number)"), on: key) }
    }
    say("kept")
  }

  /// Signs Jake out, but kills the process before the given call of the store's ``FileSystem``, counted from 1.
  ///
  /// Prints `done` when the sign-out is completed, unless the process is killed before that.
  static func signOut(dyingAtCall fatalCall: Int, in place: URL) async throws {
    let callCount = Atomic(0)
    let fileSystem = FileSystem { _ in
      if callCount.add(1, ordering: .relaxed).newValue == fatalCall { kill(getpid(), SIGKILL) }
      return nil
    }
    try await makeRepository(in: open(place, fileSystem)).signOut(userID: "jake", unsent: .discard)
    say("done")
  }

  /// Lets a repository finish a sign-out that another process has begun, and reports the resulting state.
  ///
  /// - `phase PHASE…`: the phases of the users' records; none if no sign-out has begun
  /// - `words/KEY/WORD…`: the words that the repository shows for a user
  static func finishSignOut(in place: URL) async throws {
    let repository = makeRepository(in: open(place))
    // Uses a second store, because a store object reads a collection as only one type of value.
    let store = open(place)
    // This call for Mary also continues the sign-out of Jake.
    try await repository.reload(WordsKey.all[1])
    var phases = try await loadPhases(in: store)
    let deadline = ContinuousClock.now + .seconds(60)
    while phases.contains("signingOut") {
      if .now > deadline { fail("The sign-out did not finish.") }
      try await Task.sleep(for: .milliseconds(1))
      phases = try await loadPhases(in: store)
    }
    say((["phase"] + phases).joined(separator: " "))
    for key in WordsKey.all {
      // Waits until the stored words have been read: the first list of pending mutations arrives after that.
      for await _ in repository.pendingMutations(of: key) { break }
      for await state in repository.states(of: key) {
        say((["words", key.storeID] + (state.value ?? [])).joined(separator: "/"))
        break
      }
    }
  }

  private static func loadPhases(in store: any KeyValueStore) async throws -> [String] {
    try await store.observe(collection: "words.users", as: UserPhase.self).stored.map(\.stored.value.phase)
  }
}
