import DataStore
import Foundation
import Multicast
import Repository
import TestRounds
import TestSupport
import Testing

/// Processes that are stopped, as a system stops an app in the background, and others on the same store.
@Suite(.timeLimit(.minutes(15))) struct LeaseProcessTests {
  private func makePlace(_ kind: SharedPlace.Kind) throws -> SharedPlace {
    let place = try SharedPlace(kind)
    try Data().write(to: server(of: place))
    return place
  }

  private func server(of place: SharedPlace) -> URL { place.folder.url.appending(path: "server") }

  /// The texts of the changes that the server has, in order.
  private func applied(_ place: SharedPlace) throws -> [String] {
    try String(contentsOf: server(of: place), encoding: .utf8).split(separator: "\n").map {
      String($0.split(separator: " ")[1])
    }
  }

  /// Reads the lines of a child until one of them has come.
  private func wait(for expected: String, from child: inout ChildProcess) async throws {
    while let line = await child.line() { if line == expected { return } }
    throw EndOfOutput(expected: expected)
  }

  /// Reads the lines of a child until all expected ones have come, in any order.
  private func wait(forAll expected: Set<String>, from child: inout ChildProcess) async throws {
    var missing = expected
    while !missing.isEmpty, let line = await child.line() { missing.remove(line) }
    if let line = missing.first { throw EndOfOutput(expected: line) }
  }

  private struct EndOfOutput: Error { let expected: String }

  /// Waits until no process holds the lock of the repository.
  ///
  /// A repository gives the lock up before the server of a store has heard of it.
  private func waitForUnlocking(of place: SharedPlace) async throws {
    let store = try place.open()
    while case .held = try await store.acquireLock("words.mutations") {}
  }

  @Test(arguments: SharedPlace.Kind.allCases)
  func `A process that has sent everything can be stopped, and another one sends`(kind: SharedPlace.Kind) async throws {
    let place = try makePlace(kind)
    var first = try ChildProcess("obey-lines", place.url)
    first.write("perform 1")
    try await wait(forAll: ["ended 1 confirmed", "released"], from: &first)
    try await waitForUnlocking(of: place)
    first.stop()
    var second = try ChildProcess("obey-lines", place.url)
    second.write("perform 2")
    try await wait(for: "ended 2 confirmed", from: &second)
    first.resume()
    first.write("perform 3")
    try await wait(for: "ended 3 confirmed", from: &first)
    #expect(try applied(place) == ["1", "2", "3"])
    for child in [first, second] {
      child.endInput()
      #expect(await child.end() == .success)
    }
  }

  @Test(arguments: SharedPlace.Kind.inFileSystem)
  func `A process that is stopped during a request keeps others from sending until it goes on or ends`(
    kind: SharedPlace.Kind
  ) async throws {
    for goesOn in [true, false] {
      let place = try makePlace(kind)
      var first = try ChildProcess("obey-lines", place.url)
      first.write("perform 1!")
      try await wait(for: "sending 1!", from: &first)
      first.stop()
      var second = try ChildProcess("obey-lines", place.url)
      second.write("perform 2")
      try await wait(for: "durable 2", from: &second)
      // Without the suspension, the call would wait for 10 seconds.
      second.write("suspend")
      try await wait(for: "suspended", from: &second)
      #expect(try applied(place) == [])
      var third = try ChildProcess("obey-lines", place.url)
      third.write("answer")
      if goesOn {
        first.resume()
        first.write("answer")
        try await wait(for: "ended 1! confirmed", from: &first)
      } else {
        first.kill()
        #expect(await first.end() == .killed)
        try await wait(for: "sending 1!", from: &third)
      }
      third.write("perform 3")
      try await wait(for: "ended 3 confirmed", from: &third)
      #expect(try applied(place) == ["1!", "2", "3"])
      for child in goesOn ? [first, second, third] : [second, third] {
        child.endInput()
        #expect(await child.end() == .success)
      }
    }
  }

  #if PostgreSQL
    @Test(.disabled(if: PostgreSQLPlace.isMissing))
    func `If a server ends the connection of a stopped process, another one sends, and each change is applied once`()
      async throws
    {
      let place = try makePlace(.server)
      var first = try ChildProcess("obey-lines", place.url)
      first.write("perform 1!")
      try await wait(for: "sending 1!", from: &first)
      first.write("perform 2")
      first.stop()
      try place.disconnect(first)
      var second = try ChildProcess("obey-lines", place.url)
      second.write("answer")
      second.write("perform 3")
      try await wait(for: "ended 3 confirmed", from: &second)
      // The request that had begun goes on, under its id. The other change of the process is sent after those.
      first.resume()
      first.write("answer")
      first.write("perform 4")
      try await wait(for: "ended 4 confirmed", from: &first)
      let texts = try applied(place)
      #expect(texts.sorted() == ["1!", "2", "3", "4"])
      #expect(texts.first == "1!")
      for child in [first, second] {
        child.endInput()
        #expect(await child.end() == .success)
      }
    }
  #endif

  @Test(arguments: SharedPlace.Kind.inFileSystem)
  func `Idle repositories hold no lock`(kind: SharedPlace.Kind) async throws {
    let count = Rounds.count(50, full: 10_000)
    let place = try SharedPlace(kind)
    let store = try place.open()
    let repositories = (0..<count).map { IdleSource(name: "idle\($0)") }.map { SyncedRepository($0, store: store) }
    for repository in repositories.prefix(3) {
      #expect(try await repository.perform(Mark(), on: "a") == .confirmed)
    }
    // Hangs if a repository doesn't release its lock.
    let other = try place.open()
    for number in 0..<count {
      while case .held(let releases) = try await other.acquireLock("idle\(number).mutations") {
        for await _ in releases { break }
      }
    }
  }

  private struct Mark: RepositoryMutation, Equatable {
    func apply(to value: inout Int) { value += 1 }
  }

  private struct IdleSource: MutableSource {
    let name: String

    static var empty: Int? { 0 }

    func fetch(_ key: String) async -> Int { 0 }

    func send(_ mutation: Mark, to key: String, id: MutationID) async -> MutationReply<Int> { .done }

    func disposition(of failure: Never) -> FailureDisposition {}
  }
}
