import DataStore
import Foundation
import Multicast
import TestSupport
import Testing

/// Observers receive the changes of another process.
@Suite(.timeLimit(.minutes(15))) struct TwoProcessTests {
  private let key = StoreKey<String>("text", id: "0")

  @Test(arguments: SharedPlace.Kind.allCases)
  func `An observer receives the saves and removals of another process, and each save of its own store once`(
    kind: SharedPlace.Kind
  ) async throws {
    let place = try SharedPlace(kind)
    let store = try place.open()
    var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
    var collectionChanges = try await store.observe(collection: "text", as: String.self).changes.makeAsyncIterator()
    #expect(try await ChildProcess.run("save", place.url, ["theirs", "0"]) == .success)
    let theirs = try #require(await changes.next())
    #expect(theirs.stored?.value == "theirs")
    #expect(theirs.revision == 1)
    #expect(try await store.load(key) == theirs.stored)
    let ours = try await store.save("ours", for: key)
    #expect(await changes.next() == .saved(key, ours))
    #expect(try await ChildProcess.run("remove", place.url, ["0"]) == .success)
    #expect(await changes.next() == .removed(key, revision: 3))
    #expect(try await ChildProcess.run("save", place.url, ["again", "0"]) == .success)
    let theirsAgain = try #require(await changes.next())
    #expect(theirsAgain.stored?.value == "again")
    #expect(theirsAgain.revision == 4)

    for change in [theirs, .saved(key, ours), .removed(key, revision: 3), theirsAgain] {
      #expect(await collectionChanges.next() == [change])
    }
  }

  @Test(arguments: SharedPlace.Kind.allCases)
  func `Observers of a collection receive a value that another process adds`(kind: SharedPlace.Kind) async throws {
    let place = try SharedPlace(kind)
    let store = try place.open()
    try await store.save("first", for: key)
    var changes = try await store.observe(collection: "text", as: String.self).changes.makeAsyncIterator()
    #expect(try await ChildProcess.run("save", place.url, ["theirs", "new"]) == .success)
    let commit = await changes.next()
    #expect(commit?.map(\.key.id) == ["new"])
    #expect(commit?.first?.stored?.value == "theirs")
  }

  @Test(arguments: SharedPlace.Kind.allCases)
  func `Another process observes the changes of this process`(kind: SharedPlace.Kind) async throws {
    let place = try SharedPlace(kind)
    let store = try place.open()
    try await store.save("before", for: key)
    var child = try ChildProcess("follow", place.url, ["0"])
    #expect(await child.line() == "ready")
    #expect(await child.line() == "saved before")
    for round in 1...5 {
      try await store.save("\(round)", for: key)
      #expect(await child.line() == "saved \(round)")
      try await store.remove(key)
      #expect(await child.line() == "removed")
    }
    child.endInput()
    #expect(await child.line() == nil)
    #expect(await child.end() == .success)
  }
}
