internal import DataStore
internal import Multicast

extension StoreConformance {
  /// The rules about feeds.
  static let feedChecks = [
    Check("A feed begins with what is stored, and receives the later changes in order") { harness in
      let (store, secondKey) = (try await harness.open(), Key("note", id: "second"))
      let stored = try await store.save(Note("stored"), for: key)
      let feed = await store.feed()
      try await feed.follow(collection: key.collection, as: Note.self)
      try await feed.follow(otherKey)
      try await store.save(Note("new"), for: secondKey)
      try await store.remove(key)
      try await store.save(Note("unrelated"), for: Key("unrelated", id: "0"))
      try await store.save(Note("last"), for: otherKey)
      try expect(
        await readFeed(5, feed, on: harness),
        is: [
          .began(.collection(key.collection), ["\(key): \(stored.value.text)"]), .began(.key(otherKey.keyName), []),
          .committed(["\(secondKey): new"]), .committed(["\(key): removed"]), .committed(["\(otherKey): last"]),
        ], "the elements")
    },
    Check("A commit is one element of a feed, if the store says so, and has the tag of its batch") { harness in
      let store = try await harness.open()
      let feed = await store.feed()
      try await feed.follow(collection: key.collection, as: Note.self)
      try await feed.follow(collection: otherKey.collection, as: Note.self)
      let tag = StoreTag()
      var batch = StoreBatch(tag: tag)
      batch.save(Note("first"), for: key)
      batch.save(Note("second"), for: otherKey)
      let commit = try await store.commit(batch)
      try expect(commit.tag, is: tag, "the tag of the commit")
      try expect(await store.load(key)?.tag, is: tag, "the tag of the value")
      guard store.feedIsWhole else { return }
      let elements = try await read(3, from: feed.elements, on: harness)
      guard case .committed(let transaction) = elements[2] else {
        throw Mismatch(explanation: "expected a commit, found \(elements[2])")
      }
      try expect(transaction.ownTag, is: tag, "the tag of the element")
      try expect(transaction.revision, is: commit.revision, "the revision of the element")
      try expect(transaction.changes.compactMap { $0.stored(for: key)?.value.text }, is: ["first"], "the value")
      try expect(transaction.changes.map(\.key), is: [key.keyName, otherKey.keyName], "the keys of the element")
    },
    Check("A commit of the store that changes nothing is an element of a feed that follows one of its keys") {
      harness in
      let store = try await harness.open()
      guard store.feedIsWhole else { return }
      let feed = await store.feed()
      try await feed.follow(key)
      var batch = StoreBatch()
      batch.require(nil, of: key)
      batch.remove(otherKey)
      let commit = try await store.commit(batch)
      try await store.remove(otherKey)
      try await store.save(Note("last"), for: key)
      let elements = try await read(3, from: feed.elements, on: harness)
      try expect(elements.dropFirst().map { describe($0).changes }, is: [[], ["\(key): last"]], "the changes")
      guard case .committed(let transaction) = elements[1] else { return }
      try expect(transaction.ownTag, is: commit.tag, "the tag of the element without changes")
    },
    Check("A feed never receives a part of a commit of another store") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      guard store.feedIsWhole else { return }
      let feed = await store.feed()
      try await feed.follow(collection: key.collection, as: Note.self)
      try await feed.follow(otherKey)
      for number in 1...24 {
        var batch = StoreBatch()
        batch.save(Note("\(number)"), for: key)
        batch.save(Note("\(number)"), for: otherKey)
        try await other.commit(batch)
        // Different calls notice the commit.
        switch number % 6 {
        case 0: try await feed.catchUp()
        case 1: _ = try await store.load(key)
        case 5: _ = try await store.load(otherKey)
        case 2: try await store.save(Note("own"), for: Key("note", id: "own"))
        case 3: _ = try await store.observe(collection: otherKey.collection, as: Note.self)
        default: try await store.save(Note("own"), for: Key("unrelated", id: "own"))
        }
      }
      try await feed.catchUp()
      var (first, second) = ("", "")
      for element in try await readFeedUntil("24", feed, on: harness) {
        guard case .committed(let transaction) = element else { continue }
        for change in transaction.changes {
          first = change.stored(for: key)?.value.text ?? first
          second = change.stored(for: otherKey)?.value.text ?? second
        }
        try expect(first, is: second, "the two values after an element")
      }
    },
    Check("After a feed has caught up, it has each commit that another store has made before") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      let removedKey = Key("note", id: "removed")
      try await other.save(Note("removed"), for: removedKey)
      let feed = await store.feed()
      try await feed.follow(collection: key.collection, as: Note.self)
      try await feed.follow(otherKey)
      // A suspended store notices nothing by itself.
      await store.suspend()
      try await other.save(Note("a"), for: key)
      try await other.save(Note("b"), for: otherKey)
      try await other.remove(removedKey)
      try await feed.catchUp()
      await store.resume()
      var elements: [StoreFeedElement] = []
      repeat {
        elements += try await read(1, from: feed.elements, on: harness)
      } while !elements.contains { if case .caughtUp = $0 { true } else { false } }
      let texts = elements.dropFirst(2).flatMap { describe($0).changes }
      try expect(
        Set(texts), is: ["\(key): a", "\(otherKey): b", "\(removedKey): removed"], "the changes before the marker")
    },
    Check("A feed that has ended to follow a part receives no more of it, and follows it once") { harness in
      let store = try await harness.open()
      let feed = await store.feed()
      for _ in 1...2 { try await feed.follow(collection: key.collection, as: Note.self) }
      try await feed.follow(otherKey)
      await feed.endFollowing(.collection(key.collection))
      try await store.save(Note("unseen"), for: key)
      await feed.endFollowing(.key(otherKey.keyName))
      try await store.save(Note("unseen"), for: otherKey)
      try await feed.follow(key)
      try expect(
        await readFeed(3, feed, on: harness),
        is: [
          .began(.collection(key.collection), []), .began(.key(otherKey.keyName), []),
          .began(.key(key.keyName), ["\(key): unseen"]),
        ], "the elements")
    },
    Check("A feed learns of corrupt bytes, and not of a removal", needsCorruption: true) { harness in
      let store = try await harness.open()
      guard store.feedIsWhole else { return }
      let feed = await store.feed()
      try await feed.follow(collection: key.collection, as: Note.self)
      try await store.save(Note("lost"), for: key)
      try await corrupt(key, on: harness)
      do throws(StoreError) { _ = try await store.load(key) } catch {
        guard case .undecodable = error else { throw error }
      }
      let elements = try await read(3, from: feed.elements, on: harness)
      guard case .committed(let transaction) = elements[2],
        case .unusable(key.keyName, schema: nil, _, let byteCount) = transaction.changes.first
      else { throw Mismatch(explanation: "expected the corrupt value, found \(elements[2])") }
      try expect((byteCount ?? 0) > 0, is: true, "whether the size is known")
    },
  ]

  private static let otherKey = Key("other", id: "Jake")

  /// An element of a feed as text.
  private enum FeedElement: Equatable {
    case began(StoreFeedPart, [String])
    case committed([String])
    case caughtUp

    var changes: [String] {
      switch self {
      case .began(_, let changes), .committed(let changes): changes
      case .caughtUp: []
      }
    }
  }

  private static func describe(_ element: StoreFeedElement) -> FeedElement {
    func describe(_ change: StoreFeedChange) -> String {
      switch change {
      case .saved(let key, let stored): "\(key): \((stored as? StoredValue<Note>)?.value.text ?? "another type")"
      case .removed(let key, _): "\(key): removed"
      case .unusable(let key, _, let reason, _): "\(key): \(reason)"
      }
    }
    switch element {
    case .began(let part, let changes): return .began(part, changes.map(describe))
    case .committed(let transaction): return .committed(transaction.changes.map(describe))
    case .caughtUp: return .caughtUp
    }
  }

  private static func readFeed(
    _ count: Int, _ feed: any StoreFeed, on harness: StoreHarness
  ) async throws -> [FeedElement] {
    try await read(count, from: feed.elements, on: harness).map(describe)
  }

  /// Reads the elements up to the one with a saved note of the given text.
  private static func readFeedUntil(
    _ text: String, _ feed: any StoreFeed, on harness: StoreHarness
  ) async throws -> [StoreFeedElement] {
    var elements: [StoreFeedElement] = []
    while true {
      elements += try await read(1, from: feed.elements, on: harness)
      if let last = elements.last, describe(last).changes.contains(where: { $0.hasSuffix(": \(text)") }) {
        return elements
      }
    }
  }
}
