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
  private typealias Words = SyncedRepository<WordsSource>

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

  /// A server to which no mutation can be sent, so that all mutations stay pending.
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

  private static func words(in store: any KeyValueStore) -> Words {
    Words(WordsSource(), store: store, configuration: RepositoryConfiguration())
  }

  /// Stores the values and the pending mutations of both users.
  static func keepWords(in place: URL) async throws {
    let words = words(in: open(place))
    for key in WordsKey.all {
      try await words.reload(key)
      for number in 1...2 { try await words.perform(Word(text: "\(key.storeID)'s \(number)"), on: key) }
    }
    say("kept")
  }

  /// Signs Jake out, but kills the process before the given call of the store's ``FileSystem``, counted from 1.
  static func signOut(dyingAtCall fatal: Int, in place: URL) async throws {
    let count = Atomic(0)
    let fileSystem = FileSystem { _ in
      if count.add(1, ordering: .relaxed).newValue == fatal { kill(getpid(), SIGKILL) }
      return nil
    }
    try await words(in: open(place, fileSystem)).signOut(userID: "jake", unsent: .discard)
    say("done")
  }

  /// Lets a repository finish a sign-out that another process has begun, and reports the resulting state.
  ///
  /// - `phase PHASE…`: the phases of the users' records; none if no sign-out has begun
  /// - `words/KEY/WORD…`: the words that the repository shows for a user
  static func finishSignOut(in place: URL) async throws {
    let words = words(in: open(place))
    // Uses a second store, because a store object reads a collection as only one type of value.
    let store = open(place)
    // This call for Mary also continues the sign-out of Jake.
    try await words.reload(WordsKey.all[1])
    var phase = try await phases(in: store)
    let end = ContinuousClock.now + .seconds(60)
    while phase.contains("signingOut") {
      if .now > end { fail("The sign-out did not finish.") }
      try await Task.sleep(for: .milliseconds(1))
      phase = try await phases(in: store)
    }
    say((["phase"] + phase).joined(separator: " "))
    for key in WordsKey.all {
      for await _ in words.pendingMutations(of: key) { break }
      for await state in words.states(of: key) {
        say((["words", key.storeID] + (state.value ?? [])).joined(separator: "/"))
        break
      }
    }
  }

  private static func phases(in store: any KeyValueStore) async throws -> [String] {
    try await store.observe(collection: "words.users", as: UserPhase.self).stored.map(\.stored.value.phase)
  }
}
