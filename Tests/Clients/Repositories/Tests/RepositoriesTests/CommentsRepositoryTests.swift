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
  private func makeRepository(_ client: any CommentsClient, store: (any KeyValueStore)? = nil) -> CommentsRepository {
    CommentsRepository(
      CommentsSource(client), store: store ?? self.store,
      // The clock stands still, so no attempt is repeated. A repository that is created later finds that the short delay
      // has passed.
      configuration: RepositoryConfiguration(
        pageSize: 2, retryPolicy: RetryPolicy(base: .nanoseconds(1), cap: .nanoseconds(1)), clock: ManualClock()))
  }

  /// Stores comments both locally and on the server.
  private func saveLocallyAndOnServer(_ comments: [Comment], in store: (any KeyValueStore)? = nil) async throws {
    server.edit("post") { $0 = Paged(comments) }
    try await (store ?? self.store).save(Paged(comments), for: Self.key)
  }

  private func storedTexts() async throws -> [String] {
    try await store.load(Self.key)?.value.elements.map(\.text) ?? []
  }

  // MARK: - Pages

  @Test func `An edit on the second page stays when the first page is loaded again`() async throws {
    server.edit("post") { [comments] in $0 = Paged(comments) }
    let client = CommentsTestClient(server)
    let repository = makeRepository(client)
    let values = repository.values(of: "post").subscribe()
    try await repository.reload("post")
    #expect(await values.nextTexts(count: 1) == [["1", "2"]])
    try await repository.loadMore("post")
    #expect(await values.nextTexts(count: 1) == [["1", "2", "3", "4"]])
    try await #expect(repository.perform(.edit(comments[3].id, text: "four"), on: "post") == .confirmed)
    #expect(await values.nextTexts(count: 1) == [["1", "2", "3", "four"]])
    let newest = Comment(author: "Taylor", text: "0")
    server.edit("post") { $0.upsertFirst(newest) }
    try await repository.reload("post")
    #expect(await values.nextTexts(count: 1) == [["0", "1", "2", "3", "four"]])
    try await #expect(storedTexts() == ["0", "1", "2", "3", "four"])
    try await repository.loadMore("post")
    #expect(await values.nextTexts(count: 1) == [["0", "1", "2", "3", "four", "5"]])
    #expect(
      client.requests == [
        .page(after: nil), .page(after: comments[1].id), .edit(comments[3].id, "four"), .page(after: nil),
        .page(after: comments[3].id),
      ])
  }

  @Test func `A request is cancelled when its last caller is cancelled`() async throws {
    let gate = Gate()
    let cancelledCount = CurrentValueRelay(0)
    let client = CommentsTestClient(
      server,
      onRequest: { (_) async throws(CommentsError) in
        await gate.pass()
        if Task.isCancelled { cancelledCount.update { $0 += 1 } }
      })
    let repository = makeRepository(client)
    let events = repository.events.subscribe()
    let firstCall = Task { try await repository.reload("post") }
    await gate.arrivals()
    let secondCall = Task { try await repository.reload("post") }
    await events.reaches { if case .requestJoined = $0 { true } else { false } }
    firstCall.cancel()
    await #expect(throws: RepositoryError<CommentsError>.cancelled) { try await firstCall.value }
    // The request continues for the second caller.
    #expect(cancelledCount.value == 0)
    secondCall.cancel()
    await #expect(throws: RepositoryError<CommentsError>.cancelled) { try await secondCall.value }
    for await count in cancelledCount.stream where count == 1 { break }
    gate.open()
    server.edit("post") { [comments] in $0 = Paged([comments[0]]) }
    try await repository.reload("post")
    try await #expect(storedTexts() == ["1"])
    #expect(client.requests == [.page(after: nil), .page(after: nil)])
  }

  // MARK: - Changes

  @Test func `If nothing is stored, a new comment is visible at once, and older ones after its confirmation`()
    async throws
  {
    server.edit("post") { [comments] in $0 = Paged([comments[0]]) }
    let gate = Gate()
    let repository = makeRepository(
      CommentsTestClient(server, onRequest: { (_) async throws(CommentsError) in await gate.pass() }))
    let values = repository.values(of: "post").subscribe()
    let mine = Comment(author: "I", text: "mine")
    let call = Task { try await repository.perform(.add(mine), on: "post") }
    #expect(await values.nextTexts(count: 1) == [["mine"]])
    await gate.arrivals()
    gate.open()
    try await #expect(call.value == .confirmed)
    #expect(await values.nextTexts(count: 1) == [["mine", "1"]])
    try await #expect(storedTexts() == ["mine", "1"])
  }

  @Test func `A comment written offline while nothing is stored is visible after a relaunch`() async throws {
    server.edit("post") { [comments] in $0 = Paged([comments[0]]) }
    let mine = Comment(author: "I", text: "mine")
    do {
      let offline = makeRepository(CommentsTestClient.offline(server))
      try await #expect(offline.perform(.add(mine), on: "post") == .queued)
    }
    try await #expect(store.load(Self.key) == nil)
    let gate = Gate()
    let online = makeRepository(
      CommentsTestClient(server, onRequest: { (_) async throws(CommentsError) in await gate.pass() }))
    let values = online.values(of: "post").subscribe()
    #expect(await values.nextTexts(count: 1) == [["mine"]])
    gate.open()
    try await online.waitForPendingMutations()
    #expect(await values.nextTexts(count: 1) == [["mine", "1"]])
    try await #expect(storedTexts() == ["mine", "1"])
  }

  @Test func `Cancelling the caller of a change doesn't cancel the change`() async throws {
    try await saveLocallyAndOnServer([comments[0]])
    let gate = Gate()
    let repository = makeRepository(
      CommentsTestClient(server, onRequest: { (_) async throws(CommentsError) in await gate.pass() }))
    let values = repository.values(of: "post").subscribe()
    let call = Task { try await repository.perform(.edit(comments[0].id, text: "one"), on: "post") }
    await gate.arrivals()
    call.cancel()
    await #expect(throws: RepositoryError<CommentsError>.cancelled) { try await call.value }
    gate.open()
    try await repository.waitForPendingMutations()
    #expect(await values.nextTexts(count: 2) == [["1"], ["one"]])
    try await #expect(storedTexts() == ["one"])
    #expect(server.appliedChanges.count == 1)
  }

  @Test func `An edit is still sent after six repositories were released during its attempts`() async throws {
    try await saveLocallyAndOnServer([comments[0]])
    let edit = CommentsSource.Mutation.edit(comments[0].id, text: "one")
    // The queue refuses an edit if five attempts in a row were interrupted by the end of a process. The release of a
    // repository doesn't count as the end of a process, so the edit isn't refused.
    for attempt in 0..<6 {
      let gate = Gate()
      let hanging = makeRepository(
        CommentsTestClient(
          server,
          onRequest: { (_) async throws(CommentsError) in
            await gate.pass()
            throw .offline
          }))
      let call = attempt == 0 ? Task { _ = try? await hanging.perform(edit, on: "post") } : nil
      if attempt > 0 { try await #expect(hanging.mutations.list().map(\.mutation) == [edit], "attempt \(attempt)") }
      // A refused edit isn't sent, so waiting for its attempt would never end.
      guard try await hanging.mutations.list().allSatisfy({ if case .refused = $0.standing { false } else { true } })
      else { break }
      await gate.arrivals()
      call?.cancel()
      await call?.value
    }
    let online = makeRepository(CommentsTestClient(server))
    try await online.waitForPendingMutations()
    #expect(server.comments(on: "post").map(\.text) == ["one"])
    try await #expect(online.mutations.list().isEmpty)
  }

  @Test func `An addition, an edit and a deletion are visible at once and are confirmed`() async throws {
    try await saveLocallyAndOnServer([comments[0], comments[1]])
    let remainingGates = Mutex([Gate(), Gate(), Gate()])
    let gates = remainingGates.withLock { $0 }
    let repository = makeRepository(
      CommentsTestClient(
        server,
        onRequest: { (request) async throws(CommentsError) in
          if case .page = request { return }
          let gate = remainingGates.withLock { $0.removeFirst() }
          await gate.pass()
        }))
    let values = repository.values(of: "post").subscribe()
    #expect(await values.nextTexts(count: 1) == [["1", "2"]])
    let mine = Comment(author: "I", text: "mine")
    let changes: [(CommentsSource.Mutation, [String])] = [
      (.add(mine), ["mine", "1", "2"]),
      (.edit(mine.id, text: "Mine"), ["Mine", "1", "2"]),
      (.delete(comments[0].id), ["Mine", "2"]),
    ]
    var before = ["1", "2"]
    for (gate, (mutation, after)) in zip(gates, changes) {
      let call = Task { try await repository.perform(mutation, on: "post") }
      #expect(await values.nextTexts(count: 1) == [after])
      await gate.arrivals()
      #expect(server.comments(on: "post").map(\.text) == before)
      try await #expect(repository.mutations.list().map(\.standing) == [.inFlight])
      gate.open()
      try await #expect(call.value == .confirmed)
      #expect(server.comments(on: "post").map(\.text) == after)
      try await #expect(storedTexts() == after)
      try await #expect(repository.mutations.list().isEmpty)
      before = after
    }
    // Confirming a change published no value of its own, so the next value is the reloaded one.
    server.edit("post") { $0.upsertFirst(Comment(author: "Taylor", text: "0")) }
    try await repository.reload("post")
    // The page ends with the user's own comment, which this repository has inserted into the stored comments. On the
    // server, other users' comments may lie between it and the next stored one, so the page replaces the stored
    // comments.
    #expect(await values.nextTexts(count: 1) == [["0", "Mine"]])
    try await repository.loadMore("post")
    #expect(await values.nextTexts(count: 1) == [["0", "Mine", "2"]])
  }

  @Test func `Offline edits outlive their repository and are sent in order by the next one`() async throws {
    let folder = TemporaryFolder()
    let mine = Comment(author: "I", text: "mine")
    try await saveLocallyAndOnServer([comments[0]], in: FileStore(folder: folder.url))
    weak var weakOffline: CommentsRepository?
    do {
      let offline = makeRepository(CommentsTestClient.offline(server), store: FileStore(folder: folder.url))
      weakOffline = offline
      try await #expect(offline.perform(.add(mine), on: "post") == .queued)
      try await #expect(offline.perform(.edit(mine.id, text: "Mine"), on: "post") == .queued)
      try await #expect(offline.perform(.edit(comments[0].id, text: "one"), on: "post") == .queued)
      #expect(await offline.values(of: "post").subscribe().nextTexts(count: 1) == [["Mine", "one"]])
    }
    #expect(weakOffline == nil)
    #expect(server.comments(on: "post").map(\.text) == ["1"])
    let client = CommentsTestClient(server)
    let store = FileStore(folder: folder.url)
    let online = makeRepository(client, store: store)
    #expect(await online.values(of: "post").subscribe().nextTexts(count: 1) == [["Mine", "one"]])
    try await online.waitForPendingMutations()
    // A fetch follows a change that the offline repository was about to send again when it was released.
    let changes = client.requests.filter { if case .page = $0 { false } else { true } }
    #expect(changes == [.add(mine.id), .edit(mine.id, "Mine"), .edit(comments[0].id, "one")])
    #expect(server.comments(on: "post").map(\.text) == ["Mine", "one"])
    #expect(try await store.load(Self.key)?.value.elements.map(\.text) == ["Mine", "one"])
    #expect(try await online.mutations.list().isEmpty)
  }

  @Test func `An edit that the server refuses is rolled back, and its call throws`() async throws {
    try await saveLocallyAndOnServer([comments[0]])
    let gate = Gate()
    let repository = makeRepository(
      CommentsTestClient(
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
    #expect(await values.nextTexts(count: 3) == [["1"], ["one"], ["1"]])
    try await #expect(repository.mutations.list().isEmpty)
    try await #expect(storedTexts() == ["1"])
  }

  @Test func `An edit that the server refuses after a relaunch is rolled back and stays listed`() async throws {
    try await saveLocallyAndOnServer([comments[0]])
    let edit = CommentsSource.Mutation.edit(comments[0].id, text: "one")
    do {
      let offline = makeRepository(CommentsTestClient.offline(server))
      try await #expect(offline.perform(edit, on: "post") == .queued)
    }
    let refused = PendingMutation<String, CommentsSource.Mutation>.Standing.refused(reason: "refused")
    do {
      let gate = Gate()
      let refusing = makeRepository(
        CommentsTestClient(
          server,
          onRequest: { (_) async throws(CommentsError) in
            await gate.pass()
            throw .refused
          }))
      let values = refusing.values(of: "post").subscribe()
      #expect(await values.nextTexts(count: 1) == [["one"]])
      gate.open()
      #expect(await values.nextTexts(count: 1) == [["1"]])
      try await refusing.waitForPendingMutations()
      try await #expect(refusing.mutations.list().map(\.standing) == [refused])
    }
    let relaunched = makeRepository(CommentsTestClient(server))
    try await relaunched.waitForPendingMutations()
    let listed = try await relaunched.mutations.list()
    #expect(listed.map(\.standing) == [refused])
    #expect(await relaunched.values(of: "post").subscribe().nextTexts(count: 1) == [["1"]])
    // The edit is sent again only if the app requeues it.
    try await relaunched.mutations.requeue(#require(listed.first?.id))
    try await relaunched.waitForPendingMutations()
    try await #expect(storedTexts() == ["one"])
    #expect(server.comments(on: "post").map(\.text) == ["one"])
  }

  @Test func `Two repositories on one store see each other's edits`() async throws {
    try await saveLocallyAndOnServer([comments[0], comments[1]])
    let (first, second) = (makeRepository(CommentsTestClient(server)), makeRepository(CommentsTestClient(server)))
    let firstValues = first.values(of: "post").subscribe()
    let secondValues = second.values(of: "post").subscribe()
    #expect(await firstValues.nextTexts(count: 1) == [["1", "2"]])
    #expect(await secondValues.nextTexts(count: 1) == [["1", "2"]])
    try await #expect(first.perform(.edit(comments[0].id, text: "one"), on: "post") == .confirmed)
    #expect(await firstValues.nextTexts(count: 1) == [["one", "2"]])
    #expect(await secondValues.nextTexts(count: 1) == [["one", "2"]])
    try await #expect(second.perform(.edit(comments[1].id, text: "two"), on: "post") == .confirmed)
    #expect(await secondValues.nextTexts(differingFrom: ["one", "2"]) == ["one", "two"])
    #expect(await firstValues.nextTexts(differingFrom: ["one", "2"]) == ["one", "two"])
    #expect(server.appliedChanges.count == 2)
    try await #expect(storedTexts() == ["one", "two"])
  }

  @Test func `A pending edit of one repository is visible in another, and the server makes it once`() async throws {
    try await saveLocallyAndOnServer([comments[0]])
    let isOnline = Mutex(false)
    let first = makeRepository(
      CommentsTestClient(
        server,
        onRequest: { (_) async throws(CommentsError) in if !isOnline.withLock({ $0 }) { throw .offline } }))
    let firstValues = first.values(of: "post").subscribe()
    // The leader sends all changes. A repository tries to become the leader before it publishes a value, so the first
    // one leads.
    #expect(await firstValues.nextTexts(count: 1) == [["1"]])
    let second = makeRepository(CommentsTestClient(server))
    let secondValues = second.values(of: "post").subscribe()
    #expect(await secondValues.nextTexts(count: 1) == [["1"]])
    try await #expect(first.perform(.edit(comments[0].id, text: "one"), on: "post") == .queued)
    #expect(await firstValues.nextTexts(count: 1) == [["one"]])
    #expect(await secondValues.nextTexts(count: 1) == [["one"]])
    isOnline.withLock { $0 = true }
    await first.retryNow()
    try await first.waitForPendingMutations()
    try await second.waitForPendingMutations()
    try await #expect(storedTexts() == ["one"])
    #expect(server.appliedChanges == [.edit(comments[0].id, text: "one")])
    server.edit("post") { [comments] in $0.upsertFirst(comments[1]) }
    try await second.reload("post")
    #expect(await firstValues.nextTexts(differingFrom: ["one"]) == ["2", "one"])
    #expect(await secondValues.nextTexts(differingFrom: ["one"]) == ["2", "one"])
  }

  @Test func `No edit is lost when two repositories on one store make many edits at the same time`() async throws {
    let manyComments = (0..<20).map { Comment(author: "Jake", text: "\($0)") }
    try await saveLocallyAndOnServer(manyComments)
    let repositories = [makeRepository(CommentsTestClient(server)), makeRepository(CommentsTestClient(server))]
    try await withThrowingTaskGroup { group in
      for (index, comment) in manyComments.enumerated() {
        let repository = repositories[index % 2]
        group.addTask { try await repository.perform(.edit(comment.id, text: "edit \(comment.text)"), on: "post") }
      }
      for try await result in group { #expect(result == .confirmed) }
    }
    let edited = (0..<20).map { "edit \($0)" }
    try await #expect(storedTexts() == edited)
    #expect(server.comments(on: "post").map(\.text) == edited)
    #expect(server.appliedChanges.count == 20)
  }

  @Test func `A repository can't cancel an edit that another one is sending`() async throws {
    try await saveLocallyAndOnServer([comments[0]])
    let gate = Gate()
    let first = makeRepository(
      CommentsTestClient(server, onRequest: { (_) async throws(CommentsError) in await gate.pass() }))
    let firstValues = first.values(of: "post").subscribe()
    // Once it has published a value, the first repository leads, so it sends all changes.
    #expect(await firstValues.nextTexts(count: 1) == [["1"]])
    let second = makeRepository(CommentsTestClient(server))
    let secondValues = second.values(of: "post").subscribe()
    #expect(await secondValues.nextTexts(count: 1) == [["1"]])
    let call = Task { try await first.perform(.edit(comments[0].id, text: "one"), on: "post") }
    await gate.arrivals()
    #expect(await secondValues.nextTexts(count: 1) == [["one"]])
    let id = try #require(try await second.mutations.list().first?.id)
    await #expect(throws: PendingMutationError.alreadySent(id)) { try await second.mutations.cancel(id) }
    gate.open()
    try await #expect(call.value == .confirmed)
    try await #expect(storedTexts() == ["one"])
  }

  // MARK: - Races

  @Test func `The stored value includes both an edit whose reply was lost and another user's edit`() async throws {
    try await saveLocallyAndOnServer([comments[0], comments[1]])
    let hasLostReply = Mutex(false)
    let client = CommentsTestClient(
      server,
      onReply: { (_) async throws(CommentsError) in
        let isFirstReply = hasLostReply.withLock { wasLost in
          defer { wasLost = true }
          return !wasLost
        }
        if isFirstReply { throw .lostReply }
      })
    let repository = makeRepository(client)
    let values = repository.values(of: "post").subscribe()
    try await #expect(repository.perform(.edit(comments[0].id, text: "one"), on: "post") == .queued)
    #expect(await values.nextTexts(count: 2) == [["1", "2"], ["one", "2"]])
    server.edit("post") { [comments] in $0.update(comments[1].id) { $0.text = "two" } }
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    #expect(await values.nextTexts(count: 1) == [["one", "two"]])
    try await #expect(storedTexts() == ["one", "two"])
    #expect(server.appliedChanges.count == 1)
    #expect(server.receivedIDs.count == 2)
    #expect(Set(server.receivedIDs).count == 1)
  }

  @Test func `An edit that is repeated after a lost reply doesn't replace another user's newer text`() async throws {
    try await saveLocallyAndOnServer([comments[0]])
    let hasLostReply = Mutex(false)
    let repository = makeRepository(
      CommentsTestClient(
        server,
        onReply: { (_) async throws(CommentsError) in
          let isFirstReply = hasLostReply.withLock { wasLost in
            defer { wasLost = true }
            return !wasLost
          }
          if isFirstReply { throw .lostReply }
        }))
    try await #expect(repository.perform(.edit(comments[0].id, text: "mine"), on: "post") == .queued)
    server.edit("post") { [comments] in $0.update(comments[0].id) { $0.text = "theirs" } }
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    try await #expect(storedTexts() == ["theirs"])
    #expect(await repository.values(of: "post").subscribe().nextTexts(count: 1) == [["theirs"]])
  }

  @Test func `The next repository doesn't add a comment again after the server's reply was lost`() async throws {
    try await saveLocallyAndOnServer([comments[0]])
    let mine = Comment(author: "I", text: "mine")
    do {
      let losing = makeRepository(
        CommentsTestClient(server, onReply: { (_) async throws(CommentsError) in throw .lostReply }))
      try await #expect(losing.perform(.add(mine), on: "post") == .queued)
    }
    server.edit("post") { [comments] in
      $0.remove(mine.id)
      $0.upsertFirst(comments[1])
    }
    let repository = makeRepository(CommentsTestClient(server))
    try await repository.waitForPendingMutations()
    try await #expect(storedTexts() == ["2", "1"])
    #expect(server.comments(on: "post").map(\.text) == ["2", "1"])
    #expect(server.appliedChanges == [.add(mine)])
  }

  @Test func `An edit that may have arrived is sent again if the fetched page lacks its comment`() async throws {
    let manyComments = (1...25).map { Comment(author: "Jake", text: "\($0)") }
    try await saveLocallyAndOnServer(manyComments)
    let (first, last) = (manyComments[0].id, manyComments[24].id)
    // Each of these requests fails once: the reply to the first edit is lost, the last edit doesn't arrive, and a page
    // request fails. The repository requests the page when the server has answered the repeated first edit, because the
    // stored value may already include that edit and newer ones, which applying the edit again would undo. The page
    // request that succeeds begins after the last edit has failed. Its page of 20 comments lacks the last comment, so
    // the last edit has no effect on it. That doesn't show that the server has made the edit.
    let requestsToFail = Mutex<Set<CommentsTestClient.Request>>([
      .edit(first, "first"), .edit(last, "last"), .page(after: nil),
    ])
    let gate = Gate()
    let failsNow: @Sendable (CommentsTestClient.Request) -> Bool = { request in
      requestsToFail.withLock { $0.remove(request) != nil }
    }
    let client = CommentsTestClient(
      server,
      onRequest: { (request) async throws(CommentsError) in
        switch request {
        case .page:
          await gate.pass()
          if failsNow(request) { throw .offline }
        case .edit(last, _): if failsNow(request) { throw .lostReply }
        default: return
        }
      },
      onReply: { (request) async throws(CommentsError) in if failsNow(request) { throw .lostReply } })
    // With these draws, only the last edit has a backoff before it is sent again.
    let repository = CommentsRepository(
      CommentsSource(client), store: store,
      configuration: RepositoryConfiguration(clock: ManualClock(), random: Draws([.zero, .max, .zero])))
    try await #expect(repository.perform(.edit(first, text: "first"), on: "post") == .queued)
    await gate.arrivals()
    // The first edit stays listed until a page has arrived.
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
    let repository = makeRepository(
      CommentsTestClient(
        server,
        onRequest: { (request) async throws(CommentsError) in
          if case .page = request, !isOnline.withLock({ $0 }) { throw .offline }
        }))
    let mine = Comment(author: "I", text: "mine")
    try await #expect(repository.perform(.add(mine), on: "post") == .queued)
    isOnline.withLock { $0 = true }
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    try await #expect(storedTexts() == ["mine"])
  }

  @Test func `A page that was requested before an edit was confirmed doesn't undo the edit`() async throws {
    try await saveLocallyAndOnServer([comments[0]])
    let gate = Gate()
    let isFirstPage = Mutex(true)
    let client = CommentsTestClient(
      server,
      onReply: { (request) async throws(CommentsError) in
        guard case .page = request else { return }
        let isHeld = isFirstPage.withLock { isFirstPage in
          defer { isFirstPage = false }
          return isFirstPage
        }
        if isHeld { await gate.pass() }
      })
    let repository = makeRepository(client)
    let values = repository.values(of: "post").subscribe()
    // The edit is confirmed while the reply to the first page request is held.
    let load = Task { try await repository.reload("post") }
    await gate.arrivals()
    try await #expect(repository.perform(.edit(comments[0].id, text: "one"), on: "post") == .confirmed)
    gate.open()
    try await load.value
    try await #expect(storedTexts() == ["one"])
    server.edit("post") { [comments] in $0.upsertFirst(comments[1]) }
    try await repository.reload("post")
    #expect(await values.distinctTexts(until: ["2", "one"]) == [["1"], ["one"], ["2", "one"]])
    #expect(
      client.requests == [
        .page(after: nil), .edit(comments[0].id, "one"), .page(after: nil),
      ])
  }

  // MARK: - Views

  @MainActor
  @Test func `An Observed object receives values on the main actor`() async throws {
    try await saveLocallyAndOnServer([comments[0]])
    let repository = makeRepository(CommentsTestClient(server))
    var screen: Observed<Paged<Comment>>? = Observed(repository.values(of: "post"))
    weak let weakScreen = screen
    #expect(screen?.value == nil)
    let runTask = Task { [weak screen] in await screen?.run() }
    await until { weakScreen?.value?.elements.map(\.text) == ["1"] }
    try await repository.perform(.edit(comments[0].id, text: "one"), on: "post")
    await until { weakScreen?.value?.elements.map(\.text) == ["one"] }
    runTask.cancel()
    await runTask.value
    screen = nil
    #expect(weakScreen == nil)
  }
}

extension MulticastSubscription where Element == Paged<Comment>, Failure == Never {
  /// Returns the texts of the next `count` values.
  func nextTexts(count: Int) async -> [[String]] {
    await first(count).map { $0.elements.map(\.text) }
  }

  /// Returns the texts of the next value whose texts differ from `texts`.
  func nextTexts(differingFrom texts: [String]) async -> [String]? {
    for await value in self where value.elements.map(\.text) != texts { return value.elements.map(\.text) }
    return nil
  }

  /// Returns the texts of the values up to and including `last`, without consecutive duplicates.
  func distinctTexts(until last: [String]) async -> [[String]] {
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
