import DataStore
import Foundation
import Multicast
import MulticastTesting
import Repositories
import Repository
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(15))) struct CommentsRepositoryTests {
  typealias CommentsRepository = SyncedRepository<CommentsSource>

  private static let key = StoreKey<Paged<Comment>>("comments", id: "post")

  private let store = InMemoryStore()
  private let server = CommentsServer()
  private let comments = (1...5).map { Comment(author: "Jake", text: "\($0)") }

  /// Creates a repository with pages of two comments, and with a backoff that doesn't end by itself.
  private func repository(_ client: any CommentsClient, store: (any KeyValueStore)? = nil) -> CommentsRepository {
    CommentsRepository(
      CommentsSource(client), store: store ?? self.store,
      configuration: RepositoryConfiguration(pageSize: 2, clock: ManualClock()))
  }

  /// Stores comments both locally and on the server.
  private func share(_ comments: [Comment], in store: (any KeyValueStore)? = nil) async throws {
    server.edit("post") { $0 = Paged(comments) }
    try await (store ?? self.store).save(Paged(comments), for: Self.key)
  }

  private func stored() async throws -> [String] {
    try await store.load(Self.key)?.value.elements.map(\.text) ?? []
  }

  // MARK: - Pages

  @Test func `An edit on the second page stays when the first page is loaded again`() async throws {
    server.edit("post") { [comments] in $0 = Paged(comments) }
    let network = CommentsNetwork(server)
    let repository = repository(network)
    let values = repository.values(of: "post").subscribe()
    try await repository.reload("post")
    #expect(await values.texts(1) == [["1", "2"]])
    try await repository.loadMore("post")
    #expect(await values.texts(1) == [["1", "2", "3", "4"]])
    try await #expect(repository.perform(.edit(comments[3].id, text: "four"), on: "post") == .confirmed)
    #expect(await values.texts(1) == [["1", "2", "3", "four"]])
    let newest = Comment(author: "Taylor", text: "0")
    server.edit("post") { $0.upsertFirst(newest) }
    try await repository.reload("post")
    #expect(await values.texts(1) == [["0", "1", "2", "3", "four"]])
    try await #expect(stored() == ["0", "1", "2", "3", "four"])
    try await repository.loadMore("post")
    #expect(await values.texts(1) == [["0", "1", "2", "3", "four", "5"]])
    #expect(
      network.requests == [
        .page(after: nil), .page(after: comments[1].id), .edit(comments[3].id, "four"), .page(after: nil),
        .page(after: comments[3].id),
      ])
  }

  @Test func `A request is cancelled when its last caller is cancelled`() async throws {
    let gate = Gate()
    let cancelled = CurrentValueRelay(0)
    let network = CommentsNetwork(
      server,
      onRequest: { (_) async throws(CommentsError) in
        await gate.pass()
        if Task.isCancelled { cancelled.update { $0 += 1 } }
      })
    let repository = repository(network)
    let events = repository.events.subscribe()
    let first = Task { try await repository.reload("post") }
    await gate.arrivals()
    let second = Task { try await repository.reload("post") }
    await events.reaches { if case .requestJoined = $0 { true } else { false } }
    first.cancel()
    await #expect(throws: RepositoryError<CommentsError>.cancelled) { try await first.value }
    // The request continues for the second caller.
    #expect(cancelled.value == 0)
    second.cancel()
    await #expect(throws: RepositoryError<CommentsError>.cancelled) { try await second.value }
    for await count in cancelled.stream where count == 1 { break }
    gate.open()
    server.edit("post") { [comments] in $0 = Paged([comments[0]]) }
    try await repository.reload("post")
    try await #expect(stored() == ["1"])
    #expect(network.requests == [.page(after: nil), .page(after: nil)])
  }

  // MARK: - Changes

  @Test func `If nothing is stored, a new comment is visible at once, and older ones after its confirmation`()
    async throws
  {
    server.edit("post") { [comments] in $0 = Paged([comments[0]]) }
    let gate = Gate()
    let repository = repository(
      CommentsNetwork(server, onRequest: { (_) async throws(CommentsError) in await gate.pass() }))
    let values = repository.values(of: "post").subscribe()
    let mine = Comment(author: "I", text: "mine")
    let call = Task { try await repository.perform(.add(mine), on: "post") }
    #expect(await values.texts(1) == [["mine"]])
    await gate.arrivals()
    gate.open()
    try await #expect(call.value == .confirmed)
    #expect(await values.texts(1) == [["mine", "1"]])
    try await #expect(stored() == ["mine", "1"])
  }

  @Test func `A comment written offline while nothing is stored is visible after a relaunch`() async throws {
    server.edit("post") { [comments] in $0 = Paged([comments[0]]) }
    let mine = Comment(author: "I", text: "mine")
    do {
      let offline = repository(CommentsNetwork.offline(server))
      try await #expect(offline.perform(.add(mine), on: "post") == .queued)
    }
    try await #expect(store.load(Self.key) == nil)
    let gate = Gate()
    let online = repository(
      CommentsNetwork(server, onRequest: { (_) async throws(CommentsError) in await gate.pass() }))
    let values = online.values(of: "post").subscribe()
    #expect(await values.texts(1) == [["mine"]])
    gate.open()
    try await online.waitForPendingMutations()
    #expect(await values.texts(1) == [["mine", "1"]])
    try await #expect(stored() == ["mine", "1"])
  }

  @Test func `Cancelling the caller of a change doesn't cancel the change`() async throws {
    try await share([comments[0]])
    let gate = Gate()
    let repository = repository(
      CommentsNetwork(server, onRequest: { (_) async throws(CommentsError) in await gate.pass() }))
    let values = repository.values(of: "post").subscribe()
    let call = Task { try await repository.perform(.edit(comments[0].id, text: "one"), on: "post") }
    await gate.arrivals()
    call.cancel()
    await #expect(throws: RepositoryError<CommentsError>.cancelled) { try await call.value }
    gate.open()
    try await repository.waitForPendingMutations()
    #expect(await values.texts(2) == [["1"], ["one"]])
    try await #expect(stored() == ["one"])
    #expect(server.made.count == 1)
  }

  @Test func `An edit is still sent after six repositories were released during its attempts`() async throws {
    try await share([comments[0]])
    let edit = CommentsSource.Mutation.edit(comments[0].id, text: "one")
    // The queue refuses an edit after the end of a process has interrupted five attempts in a row. The release of a
    // repository doesn't count as the end of a process, so the edit isn't refused.
    for launch in 0..<6 {
      let gate = Gate()
      let hanging = repository(
        CommentsNetwork(
          server,
          onRequest: { (_) async throws(CommentsError) in
            await gate.pass()
            throw .offline
          }))
      let call = launch == 0 ? Task { _ = try? await hanging.perform(edit, on: "post") } : nil
      if launch > 0 { try await #expect(hanging.mutations.list().map(\.mutation) == [edit], "launch \(launch)") }
      guard try await hanging.mutations.list().allSatisfy({ if case .refused = $0.standing { false } else { true } })
      else { break }
      await gate.arrivals()
      call?.cancel()
      await call?.value
    }
    let online = repository(CommentsNetwork(server))
    try await online.waitForPendingMutations()
    #expect(server.comments(on: "post").map(\.text) == ["one"])
    try await #expect(online.mutations.list().isEmpty)
  }

  @Test func `An addition, an edit and a deletion are visible at once and are confirmed`() async throws {
    try await share([comments[0], comments[1]])
    let gates = Mutex([Gate(), Gate(), Gate()])
    let shut = gates.withLock { $0 }
    let repository = repository(
      CommentsNetwork(
        server,
        onRequest: { (request) async throws(CommentsError) in
          if case .page = request { return }
          let gate = gates.withLock { $0.removeFirst() }
          await gate.pass()
        }))
    let values = repository.values(of: "post").subscribe()
    #expect(await values.texts(1) == [["1", "2"]])
    let mine = Comment(author: "I", text: "mine")
    let changes: [(CommentsSource.Mutation, [String])] = [
      (.add(mine), ["mine", "1", "2"]),
      (.edit(mine.id, text: "Mine"), ["Mine", "1", "2"]),
      (.delete(comments[0].id), ["Mine", "2"]),
    ]
    var before = ["1", "2"]
    for (gate, (mutation, after)) in zip(shut, changes) {
      let call = Task { try await repository.perform(mutation, on: "post") }
      #expect(await values.texts(1) == [after])
      await gate.arrivals()
      #expect(server.comments(on: "post").map(\.text) == before)
      try await #expect(repository.mutations.list().map(\.standing) == [.inFlight])
      gate.open()
      try await #expect(call.value == .confirmed)
      #expect(server.comments(on: "post").map(\.text) == after)
      try await #expect(stored() == after)
      try await #expect(repository.mutations.list().isEmpty)
      before = after
    }
    // The next value is the reloaded one, because no other value was published between the changes.
    server.edit("post") { $0.upsertFirst(Comment(author: "Taylor", text: "0")) }
    try await repository.reload("post")
    // The page ends with the user's own comment, which other users' comments may follow on the server. So the page
    // replaces the stored comments.
    #expect(await values.texts(1) == [["0", "Mine"]])
    try await repository.loadMore("post")
    #expect(await values.texts(1) == [["0", "Mine", "2"]])
  }

  @Test func `Offline edits outlive their repository and are sent in order by the next one`() async throws {
    let folder = TemporaryFolder()
    let mine = Comment(author: "I", text: "mine")
    try await share([comments[0]], in: FileStore(folder: folder.url))
    weak var released: CommentsRepository?
    do {
      let offline = repository(CommentsNetwork.offline(server), store: FileStore(folder: folder.url))
      released = offline
      try await #expect(offline.perform(.add(mine), on: "post") == .queued)
      try await #expect(offline.perform(.edit(mine.id, text: "Mine"), on: "post") == .queued)
      try await #expect(offline.perform(.edit(comments[0].id, text: "one"), on: "post") == .queued)
      #expect(await offline.values(of: "post").subscribe().texts(1) == [["Mine", "one"]])
    }
    #expect(released == nil)
    #expect(server.comments(on: "post").map(\.text) == ["1"])
    let network = CommentsNetwork(server)
    let store = FileStore(folder: folder.url)
    let online = repository(network, store: store)
    #expect(await online.values(of: "post").subscribe().texts(1) == [["Mine", "one"]])
    try await online.waitForPendingMutations()
    #expect(network.requests == [.add(mine.id), .edit(mine.id, "Mine"), .edit(comments[0].id, "one")])
    #expect(server.comments(on: "post").map(\.text) == ["Mine", "one"])
    #expect(try await store.load(Self.key)?.value.elements.map(\.text) == ["Mine", "one"])
    #expect(try await online.mutations.list().isEmpty)
  }

  @Test func `An edit that the server refuses is rolled back, and its call throws`() async throws {
    try await share([comments[0]])
    let gate = Gate()
    let repository = repository(
      CommentsNetwork(
        server,
        onRequest: { (_) async throws(CommentsError) in
          await gate.pass()
          throw .refused
        }))
    let values = repository.values(of: "post").subscribe()
    let call = Task { try await repository.perform(.edit(comments[0].id, text: "one"), on: "post") }
    await gate.arrivals()
    gate.open()
    await #expect(throws: RepositoryError<CommentsError>.server(.refused)) { try await call.value }
    #expect(await values.texts(3) == [["1"], ["one"], ["1"]])
    try await #expect(repository.mutations.list().isEmpty)
    try await #expect(stored() == ["1"])
  }

  @Test func `An edit that the server refuses after a relaunch is rolled back and stays listed`() async throws {
    try await share([comments[0]])
    let edit = CommentsSource.Mutation.edit(comments[0].id, text: "one")
    do {
      let offline = repository(CommentsNetwork.offline(server))
      try await #expect(offline.perform(edit, on: "post") == .queued)
    }
    let refused = PendingMutation<String, CommentsSource.Mutation>.Standing.refused(reason: "refused")
    do {
      let gate = Gate()
      let refusing = repository(
        CommentsNetwork(
          server,
          onRequest: { (_) async throws(CommentsError) in
            await gate.pass()
            throw .refused
          }))
      let values = refusing.values(of: "post").subscribe()
      #expect(await values.texts(1) == [["one"]])
      gate.open()
      #expect(await values.texts(1) == [["1"]])
      try await refusing.waitForPendingMutations()
      try await #expect(refusing.mutations.list().map(\.standing) == [refused])
    }
    let relaunched = repository(CommentsNetwork(server))
    try await relaunched.waitForPendingMutations()
    let listed = try await relaunched.mutations.list()
    #expect(listed.map(\.standing) == [refused])
    #expect(await relaunched.values(of: "post").subscribe().texts(1) == [["1"]])
    // The edit is sent again only if the app requeues it.
    try await relaunched.mutations.requeue(#require(listed.first?.id))
    try await relaunched.waitForPendingMutations()
    try await #expect(stored() == ["one"])
    #expect(server.comments(on: "post").map(\.text) == ["one"])
  }

  @Test func `Two repositories on one store see each other's edits`() async throws {
    try await share([comments[0], comments[1]])
    let (first, second) = (repository(CommentsNetwork(server)), repository(CommentsNetwork(server)))
    let firstValues = first.values(of: "post").subscribe()
    let secondValues = second.values(of: "post").subscribe()
    #expect(await firstValues.texts(1) == [["1", "2"]])
    #expect(await secondValues.texts(1) == [["1", "2"]])
    try await #expect(first.perform(.edit(comments[0].id, text: "one"), on: "post") == .confirmed)
    #expect(await firstValues.texts(1) == [["one", "2"]])
    #expect(await secondValues.texts(1) == [["one", "2"]])
    try await #expect(second.perform(.edit(comments[1].id, text: "two"), on: "post") == .confirmed)
    #expect(await secondValues.differentTexts(after: ["one", "2"]) == ["one", "two"])
    #expect(await firstValues.differentTexts(after: ["one", "2"]) == ["one", "two"])
    #expect(server.made.count == 2)
    try await #expect(stored() == ["one", "two"])
  }

  @Test func `A pending edit of one repository is visible in another, and the server makes it once`() async throws {
    try await share([comments[0]])
    let isOnline = Mutex(false)
    let first = repository(
      CommentsNetwork(
        server,
        onRequest: { (_) async throws(CommentsError) in if !isOnline.withLock({ $0 }) { throw .offline } }))
    let firstValues = first.values(of: "post").subscribe()
    // The leader sends all changes. A repository that publishes a value has tried to become the leader, so the first
    // one leads.
    #expect(await firstValues.texts(1) == [["1"]])
    let second = repository(CommentsNetwork(server))
    let secondValues = second.values(of: "post").subscribe()
    #expect(await secondValues.texts(1) == [["1"]])
    try await #expect(first.perform(.edit(comments[0].id, text: "one"), on: "post") == .queued)
    #expect(await firstValues.texts(1) == [["one"]])
    #expect(await secondValues.texts(1) == [["one"]])
    isOnline.withLock { $0 = true }
    await first.retryNow()
    try await first.waitForPendingMutations()
    try await second.waitForPendingMutations()
    try await #expect(stored() == ["one"])
    #expect(server.made == [.edit(comments[0].id, text: "one")])
    server.edit("post") { [comments] in $0.upsertFirst(comments[1]) }
    try await second.reload("post")
    #expect(await firstValues.differentTexts(after: ["one"]) == ["2", "one"])
    #expect(await secondValues.differentTexts(after: ["one"]) == ["2", "one"])
  }

  @Test func `No edit is lost when two repositories on one store make many edits at the same time`() async throws {
    let many = (0..<20).map { Comment(author: "Jake", text: "\($0)") }
    try await share(many)
    let pair = [repository(CommentsNetwork(server)), repository(CommentsNetwork(server))]
    try await withThrowingTaskGroup { group in
      for (index, comment) in many.enumerated() {
        let repository = pair[index % 2]
        group.addTask { try await repository.perform(.edit(comment.id, text: "edit \(comment.text)"), on: "post") }
      }
      for try await result in group { #expect(result == .confirmed) }
    }
    let edited = (0..<20).map { "edit \($0)" }
    try await #expect(stored() == edited)
    #expect(server.comments(on: "post").map(\.text) == edited)
    #expect(server.made.count == 20)
  }

  @Test func `A repository can't cancel an edit that another one is sending`() async throws {
    try await share([comments[0]])
    let gate = Gate()
    let first = repository(
      CommentsNetwork(server, onRequest: { (_) async throws(CommentsError) in await gate.pass() }))
    let firstValues = first.values(of: "post").subscribe()
    // After this, the first repository leads.
    #expect(await firstValues.texts(1) == [["1"]])
    let second = repository(CommentsNetwork(server))
    let secondValues = second.values(of: "post").subscribe()
    #expect(await secondValues.texts(1) == [["1"]])
    let call = Task { try await first.perform(.edit(comments[0].id, text: "one"), on: "post") }
    await gate.arrivals()
    #expect(await secondValues.texts(1) == [["one"]])
    let id = try #require(try await second.mutations.list().first?.id)
    await #expect(throws: PendingMutationError.alreadySent(id)) { try await second.mutations.cancel(id) }
    gate.open()
    try await #expect(call.value == .confirmed)
    try await #expect(stored() == ["one"])
  }

  // MARK: - Races

  @Test func `The stored value includes both an edit whose reply was lost and another user's edit`() async throws {
    try await share([comments[0], comments[1]])
    let lost = Mutex(false)
    let network = CommentsNetwork(
      server,
      onReply: { (_) async throws(CommentsError) in
        let isFirst = lost.withLock { wasLost in
          defer { wasLost = true }
          return !wasLost
        }
        if isFirst { throw .lostReply }
      })
    let repository = repository(network)
    let values = repository.values(of: "post").subscribe()
    try await #expect(repository.perform(.edit(comments[0].id, text: "one"), on: "post") == .queued)
    #expect(await values.texts(2) == [["1", "2"], ["one", "2"]])
    server.edit("post") { [comments] in $0.update(comments[1].id) { $0.text = "two" } }
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    #expect(await values.texts(1) == [["one", "two"]])
    try await #expect(stored() == ["one", "two"])
    #expect(server.made.count == 1)
    #expect(server.receivedIDs.count == 2)
    #expect(Set(server.receivedIDs).count == 1)
  }

  @Test func `An edit that is repeated after a lost reply doesn't replace another user's newer text`() async throws {
    try await share([comments[0]])
    let lost = Mutex(false)
    let repository = repository(
      CommentsNetwork(
        server,
        onReply: { (_) async throws(CommentsError) in
          let isFirst = lost.withLock { wasLost in
            defer { wasLost = true }
            return !wasLost
          }
          if isFirst { throw .lostReply }
        }))
    try await #expect(repository.perform(.edit(comments[0].id, text: "mine"), on: "post") == .queued)
    server.edit("post") { [comments] in $0.update(comments[0].id) { $0.text = "theirs" } }
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    try await #expect(stored() == ["theirs"])
    #expect(await repository.values(of: "post").subscribe().texts(1) == [["theirs"]])
  }

  @Test func `The next repository doesn't add a comment again after the server's reply was lost`() async throws {
    try await share([comments[0]])
    let mine = Comment(author: "I", text: "mine")
    do {
      let losing = repository(
        CommentsNetwork(server, onReply: { (_) async throws(CommentsError) in throw .lostReply }))
      try await #expect(losing.perform(.add(mine), on: "post") == .queued)
    }
    server.edit("post") { [comments] in
      $0.remove(mine.id)
      $0.upsertFirst(comments[1])
    }
    let repository = repository(CommentsNetwork(server))
    try await repository.waitForPendingMutations()
    try await #expect(stored() == ["2", "1"])
    #expect(server.comments(on: "post").map(\.text) == ["2", "1"])
    #expect(server.made == [.add(mine)])
  }

  @Test func `An edit that may have arrived is sent again even if a page request fails meanwhile`() async throws {
    let many = (1...25).map { Comment(author: "Jake", text: "\($0)") }
    try await share(many)
    let (first, last) = (many[0].id, many[24].id)
    // The reply to the first edit is lost, and the last edit never arrives. One page request then fails.
    let losses = Mutex<Set<CommentsNetwork.Request>>([.edit(first, "first"), .edit(last, "last"), .page(after: nil)])
    let gate = Gate()
    let lose: @Sendable (CommentsNetwork.Request) -> Bool = { request in
      losses.withLock { $0.remove(request) != nil }
    }
    let network = CommentsNetwork(
      server,
      onRequest: { (request) async throws(CommentsError) in
        switch request {
        case .page:
          await gate.pass()
          if lose(request) { throw .offline }
        case .edit(last, _): if lose(request) { throw .lostReply }
        default: return
        }
      },
      onReply: { (request) async throws(CommentsError) in if lose(request) { throw .lostReply } })
    // With these draws, only the last edit has a backoff before it is sent again.
    let repository = CommentsRepository(
      CommentsSource(network), store: store,
      configuration: RepositoryConfiguration(clock: ManualClock(), random: Draws([.zero, .max, .zero])))
    try await #expect(repository.perform(.edit(first, text: "first"), on: "post") == .queued)
    await gate.arrivals()
    let lists = repository.mutations.changes.subscribe()
    await lists.reaches { list in list.contains { $0.mutation == .edit(first, text: "first") } }
    try await #expect(repository.perform(.edit(last, text: "last"), on: "post") == .queued)
    gate.open()
    await lists.reaches { list in !list.contains { $0.mutation == .edit(first, text: "first") } }
    try await #expect(repository.mutations.list().map(\.mutation) == [.edit(last, text: "last")])
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    #expect(server.comments(on: "post").map(\.text) == ["first"] + (2...24).map { "\($0)" } + ["last"])
  }

  @Test func `If the value can't be fetched after the server adds a comment, the next retry fetches it`() async throws {
    let isOnline = Mutex(false)
    let repository = repository(
      CommentsNetwork(
        server,
        onRequest: { (request) async throws(CommentsError) in
          if case .page = request, !isOnline.withLock({ $0 }) { throw .offline }
        }))
    let mine = Comment(author: "I", text: "mine")
    try await #expect(repository.perform(.add(mine), on: "post") == .queued)
    isOnline.withLock { $0 = true }
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    try await #expect(stored() == ["mine"])
  }

  @Test func `A page that was requested before an edit was confirmed doesn't undo the edit`() async throws {
    try await share([comments[0]])
    let gate = Gate()
    let isFirst = Mutex(true)
    let network = CommentsNetwork(
      server,
      onReply: { (request) async throws(CommentsError) in
        guard case .page = request else { return }
        let isHeld = isFirst.withLock { isFirst in
          defer { isFirst = false }
          return isFirst
        }
        if isHeld { await gate.pass() }
      })
    let repository = repository(network)
    let values = repository.values(of: "post").subscribe()
    // The edit is confirmed while the reply to the first page request is held.
    let load = Task { try await repository.reload("post") }
    await gate.arrivals()
    try await #expect(repository.perform(.edit(comments[0].id, text: "one"), on: "post") == .confirmed)
    gate.open()
    try await load.value
    try await #expect(stored() == ["one"])
    server.edit("post") { [comments] in $0.upsertFirst(comments[1]) }
    try await repository.reload("post")
    #expect(await values.differentTexts(until: ["2", "one"]) == [["1"], ["one"], ["2", "one"]])
    #expect(
      network.requests == [
        .page(after: nil), .edit(comments[0].id, "one"), .page(after: nil), .page(after: nil),
      ])
  }

  // MARK: - Views

  @MainActor
  @Test func `An Observed object receives values on the main actor`() async throws {
    try await share([comments[0]])
    let repository = repository(CommentsNetwork(server))
    var screen: Observed<Paged<Comment>>? = Observed(repository.values(of: "post"))
    weak let released = screen
    #expect(screen?.value == nil)
    let running = Task { [weak screen] in await screen?.run() }
    await until { released?.value?.elements.map(\.text) == ["1"] }
    try await repository.perform(.edit(comments[0].id, text: "one"), on: "post")
    await until { released?.value?.elements.map(\.text) == ["one"] }
    running.cancel()
    await running.value
    screen = nil
    #expect(released == nil)
  }
}

extension MulticastSubscription where Element == Paged<Comment>, Failure == Never {
  /// Returns the texts of the next `count` values.
  func texts(_ count: Int) async -> [[String]] {
    await first(count).map { $0.elements.map(\.text) }
  }

  /// Returns the texts of the next value whose texts differ from `texts`.
  func differentTexts(after texts: [String]) async -> [String]? {
    for await value in self where value.elements.map(\.text) != texts { return value.elements.map(\.text) }
    return nil
  }

  /// Returns the texts of the values up to and including `last`, without consecutive duplicates.
  func differentTexts(until last: [String]) async -> [[String]] {
    var texts: [[String]] = []
    for await value in self {
      let next = value.elements.map(\.text)
      if next != texts.last { texts.append(next) }
      if next == last { break }
    }
    return texts
  }
}

/// Predetermined draws, the last of which is repeated.
private struct Draws: RandomNumberGenerator {
  private var draws: [UInt64]

  enum Draw {
    case zero, max
  }

  init(_ draws: [Draw]) {
    // A zero draw is only close to zero, because drawing from a range may never end if a generator returns only zeros.
    self.draws = draws.map { $0 == .max ? .max : 1 << 24 }
  }

  mutating func next() -> UInt64 {
    draws.count > 1 ? draws.removeFirst() : draws[0]
  }
}
