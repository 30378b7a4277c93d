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

/// A sign-out by a process that may be killed at any instant.
///
/// Two users have a value each and a change of it that waits, Jake and Mary. Each has the user's name in it.
extension TestChild {
  private typealias Words = SyncedRepository<WordsSource>

  /// The words of a user.
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

  /// A server that can be read and not changed.
  private struct WordsSource: MutableSource {
    struct Failure: Error {}

    let name = "words"

    func fetch(_ key: WordsKey) async throws(Failure) -> [String] { ["\(key.storeID)'s"] }

    func send(_ word: Word, to key: WordsKey, id: MutationID) async throws(Failure) -> MutationReply<[String]> {
      throw Failure()
    }

    func disposition(of failure: Failure) -> FailureDisposition { .retryLater() }
  }

  /// A record of a user, as far as it shows whether the user is being signed out.
  private struct UserPhase: Codable {
    let phase: String
  }

  private static func words(in store: any KeyValueStore) -> Words {
    Words(WordsSource(), store: store, configuration: RepositoryConfiguration())
  }

  /// Stores what both users have.
  static func keepWords(in place: URL) async throws {
    let words = words(in: open(place))
    for key in WordsKey.all {
      try await words.reload(key)
      for number in 1...2 { try await words.perform(Word(text: "\(key.storeID)'s \(number)"), on: key) }
    }
    say("kept")
  }

  /// Signs Jake out, but kills the process in place of one of its calls of the file system.
  static func signOut(dyingAtCall fatal: Int, in place: URL) async throws {
    let count = Atomic(0)
    let fileSystem = FileSystem { _ in
      if count.add(1, ordering: .relaxed).newValue == fatal { kill(getpid(), SIGKILL) }
      return nil
    }
    try await words(in: open(place, fileSystem)).signOut(userID: "jake", unsent: .discard)
    say("done")
  }

  /// Lets a repository finish a sign-out that another process has begun, and reports what is there then.
  ///
  /// - `phase PHASE`: the state of the user who has signed out; none if no sign-out has begun
  /// - `words KEY WORD…`: what the repository shows
  static func finishSignOut(in place: URL) async throws {
    let words = words(in: open(place))
    // A collection has one type in a store.
    let store = open(place)
    // The call for one user goes on with the sign-out of the other one.
    try await words.reload(WordsKey.all[1])
    var phase = try await phases(in: store)
    let end = ContinuousClock.now + .seconds(60)
    while phase.contains("signingOut") {
      if .now > end { fail("The sign-out isn't finished.") }
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
