import Foundation
import Multicast
import MulticastTesting
import SignIn
import Testing

@Suite(.timeLimit(.minutes(15))) struct UserServiceTests {
  private static let user = SignInSessionStub.user
  private static let dates = (0..<5).map { SignInSessionStub.date.addingTimeInterval(Double(-$0)) }

  @Test func `Signing in and out sends the states unsigned, signingIn, signed, signingOut, unsigned`() async throws {
    var service: UserService? = UserService(session: SignInSessionStub())
    let states = try #require(service?.signStates.subscribe())
    #expect(try await service?.performSignin(username: "jake", password: Password("secret")) == Self.user)
    #expect(service?.signState == .signed(Self.user))
    try await service?.performSignout()
    service = nil
    #expect(await states.all() == [.unsigned, .signingIn, .signed(Self.user), .signingOut, .unsigned])
  }

  @Test func `A late subscriber receives the current state first`() async throws {
    let gate = Gate()
    let service = UserService(
      session: SignInSessionStub(signIn: {
        await gate.pass()
        return Self.user
      }))
    let signIn = Task { try await service.signIn() }
    await gate.arrivals()
    var statesDuringSignIn = service.signStates.makeAsyncIterator()
    #expect(await statesDuringSignIn.next() == .signingIn)
    gate.open()
    try await signIn.value
    #expect(await statesDuringSignIn.next() == .signed(Self.user))
    var statesAfterSignIn = service.signStates.makeAsyncIterator()
    #expect(await statesAfterSignIn.next() == .signed(Self.user))
  }

  @Test func `A failed sign-in restores the state unsigned, and another sign-in can follow`() async throws {
    var service: UserService? = UserService(
      session: SignInSessionStub(signIn: { () throws(SignInSessionError) in throw .wrongUsernameOrPassword }))
    let states = try #require(service?.signStates.subscribe())
    for _ in 0..<2 {
      await #expect(throws: SignInError.session(.wrongUsernameOrPassword)) { try await service?.signIn() }
    }
    service = nil
    #expect(await states.all() == [.unsigned, .signingIn, .unsigned, .signingIn, .unsigned])
  }

  @Test func `A failed sign-out restores the state signed`() async throws {
    var service: UserService? = UserService(
      session: SignInSessionStub(signOut: { () throws(SignInSessionError) in throw .unreachable(reason: "no route") }))
    try await service?.signIn()
    let states = try #require(service?.signStates.subscribe())
    await #expect(throws: SignInError.session(.unreachable(reason: "no route"))) { try await service?.performSignout() }
    service = nil
    #expect(await states.all() == [.signed(Self.user), .signingOut, .signed(Self.user)])
  }

  @Test func `A cancelled sign-in restores the state unsigned and throws, even if the server answers`() async throws {
    let gate = Gate()
    var service: UserService? = UserService(
      session: SignInSessionStub(signIn: {
        await gate.pass()  // The gate lets a cancelled task pass, so the server answers the request.
        return Self.user
      }))
    let states = try #require(service?.signStates.subscribe())
    let signIn = Task { [service] in try await service?.signIn() }
    await gate.arrivals()
    signIn.cancel()
    await #expect(throws: SignInError.cancelled) { try await signIn.value }
    service = nil
    #expect(await states.all() == [.unsigned, .signingIn, .unsigned])
  }

  @Test func `A call in a cancelled task sends no request and changes nothing`() async throws {
    let session = SignInSessionStub()
    let service = UserService(session: session)
    let gate = Gate()
    let signIn = Task {
      // The gate never opens, so the task continues only when it is cancelled.
      await gate.pass()
      try await service.signIn()
    }
    signIn.cancel()
    await #expect(throws: SignInError.cancelled) { try await signIn.value }
    #expect(session.signInRequestCount == 0)
    #expect(service.signState == .unsigned)
  }

  @Test func `While a sign-in is in flight, another one and a sign-out are refused`() async throws {
    let gate = Gate()
    let session = SignInSessionStub(signIn: {
      await gate.pass()
      return Self.user
    })
    let service = UserService(session: session)
    let first = Task { try await service.signIn() }
    await gate.arrivals()
    await #expect(throws: SignInError.refused(.signingIn)) { try await service.signIn() }
    await #expect(throws: SignInError.refused(.signingIn)) { try await service.performSignout() }
    gate.open()
    try await first.value
    // A sign-in is also refused while a user is signed in.
    await #expect(throws: SignInError.refused(.signed(Self.user))) { try await service.signIn() }
    #expect(session.signInRequestCount == 1)
  }

  @Test func `Only one of many concurrent sign-ins reaches the server`() async throws {
    let session = SignInSessionStub()
    let service = UserService(session: session)
    let successCount = await withTaskGroup { group in
      for _ in 0..<100 {
        group.addTask {
          do {
            try await service.signIn()
            return 1
          } catch {
            return 0
          }
        }
      }
      return await group.reduce(0, +)
    }
    #expect(successCount == 1)
    #expect(session.signInRequestCount == 1)
  }

  @Test func `updateUser broadcasts the updated user as the state`() async throws {
    let renamed = User(uid: "007", username: "jake lin", date: SignInSessionStub.date)
    var service: UserService? = UserService(session: SignInSessionStub(user: { renamed }))
    try await service?.signIn()
    let states = try #require(service?.signStates.subscribe())
    try await service?.updateUser()
    service = nil
    #expect(await states.all() == [.signed(Self.user), .signed(renamed)])
  }

  @Test func `The reload and loadMore methods broadcast the list, and fetchUser broadcasts nothing`() async throws {
    var service: UserService? = UserService(session: SignInSessionStub(), pageSize: 2)
    try await service?.signIn()
    let states = try #require(service?.signStates.subscribe())
    let lists = try #require(service?.recentSignIns.buffering(.unbounded).subscribe())
    #expect(try await service?.fetchUser(uid: "007") == Self.user)
    try await service?.reloadRecentSignIns()
    try await service?.loadMoreRecentSignIns()
    try await service?.loadMoreRecentSignIns()
    try await service?.reloadRecentSignIns()
    service = nil
    #expect(
      await lists.all() == [
        Array(Self.dates.prefix(2)), Array(Self.dates.prefix(4)), Self.dates, Array(Self.dates.prefix(2)),
      ])
    #expect(await states.all() == [.signed(Self.user)])
  }

  @Test func `A list that was loaded before the subscription still arrives`() async throws {
    let service = UserService(session: SignInSessionStub())
    try await service.signIn()
    try await service.reloadRecentSignIns()
    var lists = service.recentSignIns.makeAsyncIterator()
    #expect(await lists.next() == Self.dates)
  }

  @Test func `A sign-out sends an empty list to current subscribers, and nothing to later ones`() async throws {
    var service: UserService? = UserService(session: SignInSessionStub())
    try await service?.signIn()
    try await service?.reloadRecentSignIns()
    let earlyLists = try #require(service?.recentSignIns.buffering(.unbounded).subscribe())
    try await service?.performSignout()
    let lateLists = try #require(service?.recentSignIns.subscribe())
    service = nil
    #expect(await earlyLists.all() == [Self.dates, []])
    #expect(await lateLists.all() == [])
  }

  @Test func `Two concurrent loads of the same older sign-ins append them only once`() async throws {
    let gate = Gate()
    var service: UserService? = UserService(
      session: SignInSessionStub(dates: { before, limit in
        if before != nil { await gate.pass() }
        return Array(Self.dates.filter { date in before.map { date < $0 } ?? true }.prefix(limit))
      }), pageSize: 2)
    try await service?.signIn()
    try await service?.reloadRecentSignIns()
    let lists = try #require(service?.recentSignIns.buffering(.unbounded).subscribe())
    let loads = (0..<2).map { _ in Task { [service] in try await service?.loadMoreRecentSignIns() } }
    await gate.arrivals(2)
    gate.open()
    for load in loads { try await load.value }
    service = nil
    #expect(await lists.all() == [Array(Self.dates.prefix(2)), Array(Self.dates.prefix(4))])
  }

  @Test func `A reply that arrives after the sign-out is discarded, and its call throws the error refused`()
    async throws
  {
    let gate = Gate()
    var service: UserService? = UserService(
      session: SignInSessionStub(
        user: {
          await gate.pass()
          return Self.user
        },
        dates: { _, _ in
          await gate.pass()
          return Self.dates
        }))
    try await service?.signIn()
    let lists = try #require(service?.recentSignIns.buffering(.unbounded).subscribe())
    let update = Task { [service] in try await service?.updateUser() }
    let reload = Task { [service] in try await service?.reloadRecentSignIns() }
    await gate.arrivals(2)
    try await service?.performSignout()
    gate.open()
    await #expect(throws: SignInError.refused(.unsigned)) { try await update.value }
    await #expect(throws: SignInError.refused(.unsigned)) { try await reload.value }
    #expect(service?.signState == .unsigned)
    service = nil
    // The sign-out sends the only list, an empty one.
    #expect(await lists.all() == [[]])
  }

  @Test func `After another sign-in, the reply to an earlier request is discarded, even for the same user`()
    async throws
  {
    let gate = Gate()
    let signInCount = Lock(0)
    var service: UserService? = UserService(
      session: SignInSessionStub(
        signIn: {
          let number = signInCount.withLock { count in
            count += 1
            return count
          }
          return User(uid: "007", username: "jake", date: SignInSessionStub.date.addingTimeInterval(Double(number)))
        },
        user: {
          await gate.pass()
          return Self.user
        },
        dates: { _, _ in
          await gate.pass()
          return Self.dates
        }))
    try await service?.signIn()
    let lists = try #require(service?.recentSignIns.buffering(.unbounded).subscribe())
    let update = Task { [service] in try await service?.updateUser() }
    let reload = Task { [service] in try await service?.reloadRecentSignIns() }
    let loadMore = Task { [service] in try await service?.loadMoreRecentSignIns() }
    // All three requests are in flight while the user signs out and in again.
    await gate.arrivals(3)
    try await service?.performSignout()
    try await service?.signIn()
    let stateOfSecondSignIn = try #require(service?.signState)
    gate.open()
    for call in [update, reload, loadMore] {
      await #expect(throws: SignInError.refused(stateOfSecondSignIn)) { try await call.value }
    }
    #expect(service?.signState == stateOfSecondSignIn)
    service = nil
    // The sign-out sends the only list, an empty one.
    #expect(await lists.all() == [[]])
  }

  @Test func `The reply to an earlier update never replaces the reply to a later one`() async throws {
    let gates = [Gate(), Gate()]
    let requestCount = Lock(0)
    let newer = User(uid: "007", username: "newer", date: SignInSessionStub.date)
    let service = UserService(
      session: SignInSessionStub(user: {
        let index = requestCount.withLock { count in
          defer { count += 1 }
          return count
        }
        await gates[index].pass()
        return index == 0 ? Self.user : newer
      }))
    try await service.signIn()
    let first = Task { try await service.updateUser() }
    await gates[0].arrivals()
    let second = Task { try await service.updateUser() }
    await gates[1].arrivals()
    // The second request is answered first.
    gates[1].open()
    try await second.value
    gates[0].open()
    try await first.value
    #expect(service.signState == .signed(newer))
  }

  // MARK: User data

  @Test func `A user's data is opened by the sign-in, and erased before the server receives the sign-out`()
    async throws
  {
    let gate = Gate()
    let data = UserDataStub()
    let service = UserService(session: SignInSessionStub(signOut: { await gate.pass() }), userData: [data])
    #expect(data.log == [])
    var states = service.signStates.makeAsyncIterator()
    var receivedStates: [SignState?] = [await states.next()]
    try await service.signIn()
    #expect(data.log == ["open 007"])
    let signOut = Task { try await service.performSignout() }
    await gate.arrivals()
    #expect(data.log == ["open 007", "erase 007"])
    gate.open()
    try await signOut.value
    #expect(data.log == ["open 007", "erase 007"])
    for _ in 0..<4 { receivedStates.append(await states.next()) }
    #expect(receivedStates == [.unsigned, .signingIn, .signed(Self.user), .signingOut, .unsigned])
  }

  @Test func `A sign-out that would lose changes throws their number and sends no request`()
    async throws
  {
    let dataWithUnsentChanges = UserDataStub(unsentCount: 2)
    let otherData = UserDataStub()
    let signOutCount = Lock(0)
    let service = UserService(
      session: SignInSessionStub(signOut: { signOutCount.withLock { $0 += 1 } }),
      userData: [otherData, dataWithUnsentChanges])
    try await service.signIn()
    await #expect(throws: SignInError.userData(.unsent(2))) { try await service.performSignout() }
    #expect(service.signState == .signed(Self.user))
    #expect(signOutCount.withLock { $0 } == 0)
    // All data is opened again, including the data whose erasure was refused.
    #expect(otherData.log == ["open 007", "erase 007", "open 007"])
    #expect(dataWithUnsentChanges.log == ["open 007", "erase 007", "open 007"])
    try await service.performSignout(discardingUnsent: true)
    #expect(service.signState == .unsigned)
    #expect(signOutCount.withLock { $0 } == 1)
    #expect(dataWithUnsentChanges.log.last == "discard 007")
  }

  @Test func `If a sign-out fails, the erased data is opened again`() async throws {
    let data = UserDataStub()
    let service = UserService(
      session: SignInSessionStub(signOut: { () throws(SignInSessionError) in throw .unreachable(reason: "no route") }),
      userData: [data])
    try await service.signIn()
    await #expect(throws: SignInError.session(.unreachable(reason: "no route"))) { try await service.performSignout() }
    #expect(data.log == ["open 007", "erase 007", "open 007"])
    #expect(service.signState == .signed(Self.user))
  }

  @Test(arguments: [
    (UserDataError.cancelled, SignInError.cancelled),
    (.notErased(reason: "The disk is full. Make room."), .userData(.notErased(reason: "The disk is full. Make room."))),
  ])
  func `A failed or cancelled erasure of data keeps the user signed in`(_ error: UserDataError, _ expected: SignInError)
    async throws
  {
    let service = UserService(
      session: SignInSessionStub(), userData: [UserDataStub { _ throws(UserDataError) in throw error }])
    try await service.signIn()
    await #expect(throws: expected) { try await service.performSignout(discardingUnsent: true) }
    #expect(service.signState == .signed(Self.user))
  }

  @Test func `A sign-in that fails opens no data`() async {
    let data = UserDataStub()
    let service = UserService(
      session: SignInSessionStub(signIn: { () throws(SignInSessionError) in throw .wrongUsernameOrPassword }),
      userData: [data])
    await #expect(throws: SignInError.session(.wrongUsernameOrPassword)) { try await service.signIn() }
    #expect(data.log == [])
  }

  @Test func `Updates, loads and sign-outs without a signed-in user are refused`() async {
    let service = UserService(session: SignInSessionStub())
    await #expect(throws: SignInError.refused(.unsigned)) { try await service.updateUser() }
    await #expect(throws: SignInError.refused(.unsigned)) { try await service.reloadRecentSignIns() }
    await #expect(throws: SignInError.refused(.unsigned)) { try await service.loadMoreRecentSignIns() }
    await #expect(throws: SignInError.refused(.unsigned)) { try await service.performSignout() }
  }

  @Test(arguments: [
    (SignInError.refused(.unsigned), "No user is signed in: sign in first."),
    (.refused(.signingIn), "A sign-in is in flight: wait until it ends."),
    (.refused(.signed(SignInSessionStub.user)), "jake is signed in. Sign out before another user signs in."),
    (.refused(.signingOut), "A sign-out is in flight: wait until it ends."),
    (
      .session(.wrongUsernameOrPassword), "The username or the password is wrong. Check both, then try again."
    ),
    (.session(.unknownUser(uid: "9")), "No user has the id \"9\". Sign in again."),
    (
      .session(.unreachable(reason: "no route")),
      "The server could not be reached (no route). Check the connection, then try again."
    ),
    (
      .userData(.unsent(1)), "The server doesn't have 1 of your changes. Let it be sent, or sign out without it."
    ),
    (
      .userData(.unsent(2)), "The server doesn't have 2 of your changes. Let them be sent, or sign out without them."
    ),
    (
      .userData(.notErased(reason: "The disk is full. Make room.")),
      "Your data on this device could not be erased: The disk is full. Make room."
    ),
    (.userData(.cancelled), SignInError.cancelled.description),
    (.cancelled, "The call was cancelled before it was completed. Call again if the result is still needed."),
  ])
  func `Errors say what to do`(_ error: SignInError, _ text: String) {
    #expect(error.description == text)
    #expect(error.localizedDescription == text)
  }
}
