import DataStore
import Multicast
import MulticastTesting
import RepositoryTesting
import TestRounds
import TestSupport
import Testing

@testable import Repository

/// Lists of several pages: no fetch shortens a list that is as long on the server.
@Suite(.timeLimit(.minutes(15))) struct LongListTests {
  private let fixture = ListFixture()

  private var ids: [Int] { Array(1...100) }

  // MARK: - Length

  @Test(arguments: [20, 50]) func `An edit beside a reload doesn't shorten the list`(pageSize: Int) async throws {
    let repository = try await fixture.makeRepository(pageSize: pageSize, pages: 100 / pageSize)
    let gate = Gate()
    fixture.holdFetches(at: gate, afterServing: true)
    let reload = Task { try await repository.reload("a") }
    await gate.arrivals()
    #expect(try await repository.perform(.rename(77, "new"), on: "a") == .confirmed)
    gate.open()
    try await reload.value
    let stored = try await fixture.stored()
    #expect(stored.elements.map(\.id) == ids)
    #expect(stored.elements[76].title == "new")
  }

  @Test func `An edit beside a next page is kept, and the page is requested once`() async throws {
    let repository = try await fixture.makeRepository(pages: 3)
    let gate = Gate()
    fixture.holdFetches(at: gate, afterServing: true)
    let load = Task { try await repository.loadMore("a") }
    await gate.arrivals()
    #expect(try await repository.perform(.rename(7, "new"), on: "a") == .confirmed)
    gate.open()
    try await load.value
    let stored = try await fixture.stored()
    #expect(stored.elements.map(\.id) == Array(1...80))
    #expect(stored.elements[6].title == "new")
    #expect(fixture.requests.value == [.init(cursor: "60", limit: 20)])
  }

  @Test func `A change that can't be applied twice is confirmed by as many pages as are loaded`() async throws {
    let repository = try await fixture.makeRepository(pages: 5)
    let sendGate = Gate()
    fixture.onApply = { [server = fixture.server] (change, id) async throws(NotesFailure) in
      try server.apply(change, id)
      await sendGate.pass()
    }
    let edit = Task { try await repository.perform(.increment(77), on: "a") }
    await sendGate.arrivals()
    // The reload ends between the change and its reply, so its value may include the change.
    fixture.server.edit("a") { $0.update(1) { $0.title = "elsewhere" } }
    try await repository.reload("a")
    sendGate.open()
    #expect(try await edit.value == .confirmed)
    let stored = try await fixture.stored()
    #expect(stored.elements.map(\.id) == ids)
    #expect(stored.elements[76].count == 1)
    #expect(fixture.requests.value.map(\.cursor) == [nil, nil, "20", "40", "60", "80"])
  }

  @Test func `A lost reply doesn't shorten the list`() async throws {
    let repository = try await fixture.makeRepository(pages: 5)
    let isLost = Setting(true)
    fixture.onApply = { [server = fixture.server] (change, id) async throws(NotesFailure) in
      try server.apply(change, id)
      if isLost.value {
        isLost.value = false
        throw .brokenConnection
      }
    }
    #expect(try await repository.perform(.increment(77), on: "a") == .queued)
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    let stored = try await fixture.stored()
    #expect(stored.elements.map(\.id) == ids)
    #expect(stored.elements[76].count == 1)
  }

  @Test func `A reload keeps the length if more than a page was inserted, or a row has moved`() async throws {
    let repository = try await fixture.makeRepository(pages: 5)
    fixture.server.edit("a") { $0.elements.insert(contentsOf: (101...125).map { Row(id: $0) }, at: 0) }
    try await repository.reload("a")
    try await #expect(fixture.storedIDs() == Array(101...125) + Array(1...100))
    // The second page ends with a stored row, which the other stored ones follow.
    #expect(fixture.requests.value.map(\.cursor) == [nil, "120"])

    fixture.requests.value = []
    fixture.server.edit("a") { $0.elements.append($0.elements.remove(at: 3)) }
    try await repository.reload("a")
    try await #expect(fixture.storedIDs() == fixture.server.value(of: "a").elements.map(\.id))
    #expect(fixture.requests.value.map(\.limit) == [20, 20, 20, 20, 20, 20, 5])
  }

  @Test func `A reload of an unchanged list makes one request`() async throws {
    let repository = try await fixture.makeRepository(pages: 5)
    try await repository.reload("a")
    try await #expect(fixture.storedIDs() == ids)
    #expect(fixture.requests.value == [.init(cursor: nil, limit: 20)])
  }

  @Test func `A row that isn't sent yet doesn't push a row out of the list`() async throws {
    let repository = try await fixture.makeRepository(pages: 3)
    fixture.onApply = { (_, _) async throws(NotesFailure) in throw .offline }
    #expect(try await repository.perform(.add(200), on: "a") == .queued)
    fixture.server.edit("a") { $0.elements.insert(Row(id: 200), at: 0) }
    try await repository.reloadLoadedPages("a")
    try await #expect(fixture.storedIDs() == [200] + Array(1...60))
  }

  @Test func `If the server refuses a page, the stored pages stay, and the error is thrown`() async throws {
    let repository = try await fixture.makeRepository(pages: 5)
    fixture.onFetch = { [server = fixture.server] (cursor, limit) async throws(NotesFailure) in
      if cursor == "40" { throw .refused }
      return server.page(of: "a", after: cursor, limit: limit)
    }
    await #expect(throws: RepositoryError<NotesFailure>.server(.refused)) {
      try await repository.reloadLoadedPages("a")
    }
    try await #expect(fixture.storedIDs() == ids)
  }

  @Test func `Too many pages without rows leave the list as it is`() async throws {
    let repository = try await fixture.makeRepository(pages: 3)
    fixture.onFetch = { (cursor, _) async throws(NotesFailure) in
      Paged(nextCursor: "\((cursor.flatMap { Int($0) } ?? 1_000) + 1)")
    }
    let events = repository.events.subscribe()
    try await repository.reloadLoadedPages("a")
    #expect(fixture.requests.value.count == 20)
    try await #expect(fixture.storedIDs() == Array(1...60))
    await events.reaches { $0 == .endlessPages(key: "a") }
  }

  @Test func `No schedule of edits, fetches, pages, polls and lost replies shortens a list`() async {
    let firstSeed = Rounds.fixedSeed ?? .random(in: 0...UInt64(UInt32.max))
    for seed in firstSeed..<firstSeed + UInt64(Rounds.count(30, full: 10_000)) {
      await Task.yield()
      var run = ListRun(seed: seed)
      let violations = run.run()
      #expect(violations == [], "Seed \(seed), \(run.trace)")
      if !violations.isEmpty { return }
    }
  }

  // MARK: - Bringing all pages up to date

  @Test func `A row that was deleted behind the first page disappears when the loaded pages are reloaded`() async throws
  {
    let repository = try await fixture.makeRepository(pages: 3)
    fixture.server.edit("a") { $0.remove(45) }
    try await repository.reload("a")
    try await #expect(fixture.storedIDs() == Array(1...60))
    fixture.requests.value = []
    try await repository.reloadLoadedPages("a")
    try await #expect(fixture.storedIDs() == Array(1...44) + Array(46...61))
    #expect(
      fixture.requests.value
        == [.init(cursor: nil, limit: 20), .init(cursor: "20", limit: 20), .init(cursor: "40", limit: 20)])
    // The value is fresh now.
    try await repository.refreshLoadedPages("a")
    #expect(fixture.requests.value.count == 3)
  }

  @Test func `If a page fails, the stored pages stay, and the error is thrown`() async throws {
    let repository = try await fixture.makeRepository(pages: 3)
    fixture.server.edit("a") { $0.remove(1) }
    fixture.onFetch = { [server = fixture.server] (cursor, limit) async throws(NotesFailure) in
      if cursor == "41" { throw .offline }
      return server.page(of: "a", after: cursor, limit: limit)
    }
    await #expect(throws: RepositoryError<NotesFailure>.server(.offline)) {
      try await repository.reloadLoadedPages("a")
    }
    try await #expect(fixture.storedIDs() == Array(1...60))
  }

  @Test func `A cancelled reload makes no further requests`() async throws {
    let repository = try await fixture.makeRepository(pages: 5)
    let gate = Gate()
    fixture.onFetch = { [server = fixture.server] (cursor, limit) async throws(NotesFailure) in
      await gate.pass()
      return server.page(of: "a", after: cursor, limit: limit)
    }
    let reload = Task { try await repository.reloadLoadedPages("a") }
    await gate.arrivals()
    reload.cancel()
    await #expect(throws: RepositoryError<NotesFailure>.cancelled) { try await reload.value }
    gate.open()
    try await repository.reload("a")
    #expect(fixture.requests.value.count == 2, "\(fixture.requests.value)")
  }

  @Test func `A newest page beside a walk of the loaded pages doesn't end the walk without its result`() async throws {
    let repository = try await fixture.makeRepository(pages: 3)
    fixture.server.edit("a") { $0.remove(45) }
    let gate = Gate()
    fixture.holdPage(after: "20", at: gate)
    let walk = Task { try await repository.reloadLoadedPages("a") }
    await gate.arrivals()
    // Joins the walk, which includes the newest page.
    let reload = Task { try await repository.reload("a") }
    gate.open()
    try await reload.value
    try await walk.value
    try await #expect(fixture.storedIDs() == Array(1...44) + Array(46...61))
  }

  @Test func `Another repository's unchanged newest page doesn't make a walk begin again`() async throws {
    let (repository, other) = (try await fixture.makeRepository(pages: 3), fixture.makeRepository())
    fixture.server.edit("a") { $0.remove(45) }
    let gate = Gate()
    fixture.holdPage(after: "20", at: gate)
    let walk = Task { try await repository.reloadLoadedPages("a") }
    await gate.arrivals()
    try await other.reload("a")
    gate.open()
    try await walk.value
    try await #expect(fixture.storedIDs() == Array(1...44) + Array(46...61))
    #expect(fixture.requests.value.count == 4)
  }

  // MARK: - Rows and cursors

  @Test func `A row that the server returns twice is stored once`() async throws {
    fixture.onFetch = { (cursor, _) async throws(NotesFailure) in
      cursor == nil
        ? Paged([1, 2, 1].map { Row(id: $0) }, nextCursor: "next") : Paged([3, 3, 2].map { Row(id: $0) })
    }
    let repository = try await fixture.makeRepository(pages: 1)
    try await #expect(fixture.storedIDs() == [1, 2])
    try await repository.loadMore("a")
    try await #expect(fixture.storedIDs() == [1, 2, 3])
    try await repository.reloadLoadedPages("a")
    try await #expect(fixture.storedIDs() == [1, 2, 3])
  }

  @Test func `Pages without rows are skipped, up to a limit`() async throws {
    let firstNumber = Setting(3)
    fixture.onFetch = { (cursor, _) async throws(NotesFailure) in
      let number = cursor.flatMap { Int($0) } ?? 0
      return number < firstNumber.value
        ? Paged(nextCursor: "\(number + 1)") : Paged([Row(id: number)], nextCursor: "\(number + 1)")
    }
    let repository = try await fixture.makeRepository(pages: 1)
    try await #expect(fixture.stored() == Paged([Row(id: 3)], nextCursor: "4"))
    firstNumber.value = 10
    try await repository.loadMore("a")
    try await #expect(fixture.storedIDs() == [3, 10])
    fixture.requests.value = []
    firstNumber.value = 1_000
    try await repository.loadMore("a")
    #expect(fixture.requests.value.count == 20)
    try await #expect(fixture.stored() == Paged([Row(id: 3), Row(id: 10)], nextCursor: "31"))
  }

  @Test(arguments: [1, 3]) func `A list whose cursors go in a circle ends, and is reported`(length: Int) async throws {
    fixture.onFetch = { (cursor, _) async throws(NotesFailure) in
      let number = cursor.flatMap { Int($0) } ?? 0
      return Paged(number == 0 ? [Row(id: 1)] : [], nextCursor: "\(number % length + 1)")
    }
    let repository = try await fixture.makeRepository(pages: 1)
    let events = repository.events.subscribe()
    try await repository.loadMore("a")
    try await #expect(fixture.stored() == Paged([Row(id: 1)]))
    await events.reaches { $0 == .endlessPages(key: "a") }
  }

  @Test func `A server that uses one cursor for all pages is paged to its end`() async throws {
    let number = Counter()
    fixture.onFetch = { (cursor, _) async throws(NotesFailure) in
      let next = number.next()
      return next > 3 ? Paged() : Paged([Row(id: next)], nextCursor: "scroll")
    }
    let repository = try await fixture.makeRepository(pages: 4)
    try await #expect(fixture.stored() == Paged((1...3).map { Row(id: $0) }))
    _ = repository
  }
}
