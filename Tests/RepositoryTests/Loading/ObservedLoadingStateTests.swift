import MulticastTesting
import TestRounds
import Testing

@testable import Repository

@Suite struct ObservedLoadingStateTests {
  typealias State = ObservedLoadingState<String>

  private static let noInterval = LoadingSchedule(stopTimeout: .seconds(5), every: nil)
  private static let every10Seconds = LoadingSchedule(stopTimeout: .seconds(5), every: .seconds(10))
  private static let every4Seconds = LoadingSchedule(stopTimeout: .seconds(1), every: .seconds(4))

  /// Completes the requests at the given time, each with a fetched value, and returns them.
  private func complete(_ requests: [State.Request], _ state: inout State, at now: Duration) -> [State.Request] {
    for request in requests {
      state.recordLoad(of: request.key, at: now)
      #expect(state.endRequest(request, .fetched, isStillDue: false) == [])
    }
    return requests
  }

  @Test func `Only the first observer of a key causes a fetch`() {
    var state = State()
    #expect(complete(state.begin("a", Self.noInterval, at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.begin("a", Self.every10Seconds, at: .seconds(1)) == [])
    #expect(state.begin("b", Self.noInterval, at: .seconds(1)) == [.refresh("b")])
    #expect(state.begin("b", Self.noInterval, at: .seconds(1)) == [])
  }

  @Test func `An observer that returns before the stop timeout doesn't cause a fetch`() {
    var state = State()
    #expect(complete(state.begin("a", Self.noInterval, at: .zero), &state, at: .zero) == [.refresh("a")])
    state.end("a", Self.noInterval, at: .seconds(1))
    #expect(state.takeDue(at: .seconds(5)) == [])
    #expect(state.begin("a", Self.noInterval, at: .seconds(5)) == [])
    state.end("a", Self.noInterval, at: .seconds(7))
    // The outdated alarm that the first call of `end` set is still there.
    #expect(state.deadline == .seconds(6))
    #expect(state.takeDue(at: .seconds(11)) == [])
    #expect(state.deadline == .seconds(12))
    #expect(state.takeDue(at: .seconds(12)) == [])
    #expect(state.count == 0)
    #expect(state.begin("a", Self.noInterval, at: .seconds(12)) == [.refresh("a")])
  }

  @Test func `An interval is measured from the end of the last fetch`() {
    var state = State()
    #expect(state.begin("a", Self.every10Seconds, at: .zero) == [.refresh("a")])
    state.recordLoad(of: "a", at: .seconds(3))
    #expect(state.endRequest(.refresh("a"), .fetched, isStillDue: false) == [])
    #expect(state.takeDue(at: .seconds(12)) == [])
    #expect(state.deadline == .seconds(13))
    #expect(state.takeDue(at: .seconds(13)) == [.reload("a")])
    // The fetch is still in progress.
    #expect(state.takeDue(at: .seconds(30)) == [])
    #expect(state.deadline == nil)
    state.recordLoad(of: "a", at: .seconds(31))
    #expect(state.endRequest(.reload("a"), .fetched, isStillDue: false) == [])
    #expect(state.deadline == .seconds(41))
  }

  @Test func `An interval is also measured from a fetch that ended before the first observer subscribed`() {
    var state = State()
    #expect(state.begin("a", Self.every10Seconds, lastLoad: .seconds(-4), at: .zero) == [.refresh("a")])
    #expect(state.endRequest(.refresh("a"), .wasFresh, isStillDue: false) == [])
    #expect(state.takeDue(at: .seconds(5)) == [])
    #expect(state.takeDue(at: .seconds(6)) == [.reload("a")])
    #expect(state.begin("b", Self.every10Seconds, lastLoad: .seconds(-10), at: .seconds(6)) == [.reload("b")])
    #expect(state.takeDue(at: .seconds(6)) == [])
  }

  @Test func `The shortest interval of the current observers applies`() {
    var state = State()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.begin("a", Self.every4Seconds, at: .seconds(1)) == [])
    #expect(complete(state.takeDue(at: .seconds(4)), &state, at: .seconds(5)) == [.reload("a")])
    state.end("a", Self.every4Seconds, at: .seconds(6))
    #expect(state.takeDue(at: .seconds(14)) == [])
    #expect(state.takeDue(at: .seconds(15)) == [.reload("a")])
  }

  @Test func `A fetch that becomes due without an observer is made when an observer returns`() {
    var state = State()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    state.end("a", Self.every10Seconds, at: .seconds(8))
    #expect(state.takeDue(at: .seconds(11)) == [])
    #expect(state.invalidate(.key("a")) == [])
    #expect(complete(state.begin("a", Self.noInterval, at: .seconds(12)), &state, at: .seconds(12)) == [.refresh("a")])
    state.end("a", Self.noInterval, at: .seconds(13))
    #expect(state.begin("a", Self.noInterval, at: .seconds(14)) == [])
  }

  @Test func `A missed fetch and an elapsed interval cause only one request when an observer returns`() {
    var state = State()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    state.end("a", Self.every10Seconds, at: .seconds(8))
    #expect(state.invalidate(.key("a")) == [])
    #expect(state.begin("a", Self.every10Seconds, at: .seconds(12)) == [.reload("a")])
    #expect(state.takeDue(at: .seconds(12)) == [])
  }

  @Test func `If an interval elapses without an observer, a reload is due when an observer returns`() {
    var state = State()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    state.end("a", Self.every10Seconds, at: .seconds(8))
    #expect(state.takeDue(at: .seconds(12)) == [])
    #expect(state.begin("a", Self.every10Seconds, at: .seconds(12)) == [])
    #expect(state.takeDue(at: .seconds(12)) == [.reload("a")])
  }

  @Test func `An app that becomes active fetches observed values once`() {
    var state = State()
    for key in ["b", "a"] {
      #expect(complete(state.begin(key, Self.noInterval, at: .zero), &state, at: .zero) == [.refresh(key)])
    }
    #expect(state.setActive(true, at: .seconds(1)) == [])
    #expect(state.setActive(false, at: .seconds(1)) == [])
    #expect(state.begin("c", Self.every10Seconds, at: .seconds(1)) == [])
    #expect(state.takeDue(at: .seconds(20)) == [])
    #expect(state.setActive(true, at: .seconds(20)) == [.refresh("b"), .refresh("a"), .reload("c")])
    #expect(state.setActive(true, at: .seconds(20)) == [])
  }

  @Test func `Nothing is fetched while the network is unavailable or the app is inactive`() {
    var state = State()
    #expect(state.setOnline(false, at: .zero) == [])
    #expect(state.begin("a", Self.noInterval, at: .zero) == [])
    #expect(state.invalidate(.all) == [])
    #expect(state.setActive(false, at: .seconds(1)) == [])
    #expect(state.setOnline(true, at: .seconds(2)) == [])
    #expect(state.setActive(true, at: .seconds(3)) == [.refresh("a")])
  }

  @Test func `Observed keys that become stale are fetched in the order in which they were observed`() {
    var state = State()
    for key in ["b", "a", "c"] {
      #expect(complete(state.begin(key, Self.noInterval, at: .zero), &state, at: .zero) == [.refresh(key)])
    }
    state.end("a", Self.noInterval, at: .seconds(1))
    #expect(complete(state.invalidate(.all), &state, at: .seconds(1)) == [.refresh("b"), .refresh("c")])
    #expect(state.invalidate(.key("c")) == [.refresh("c")])
    #expect(state.invalidate(.key("d")) == [])
    #expect(state.begin("a", Self.noInterval, at: .seconds(2)) == [.refresh("a")])
  }

  @Test func `Requests that become due during a failing fetch are made as one request after it`() {
    var state = State()
    #expect(state.begin("a", Self.noInterval, at: .zero) == [.refresh("a")])
    for _ in 0..<100 { #expect(state.invalidate(.key("a")) == []) }
    #expect(state.setActive(false, at: .seconds(1)) == [])
    #expect(state.setActive(true, at: .seconds(1)) == [])
    #expect(state.endRequest(.refresh("a"), .failed, isStillDue: false) == [.refresh("a")])
    #expect(state.endRequest(.refresh("a"), .failed, isStillDue: false) == [])
    // No request is in progress, so this call has no effect.
    #expect(state.endRequest(.refresh("a"), .failed, isStillDue: true) == [])
  }

  @Test func `Requests that become due during a fetch are dropped if it fetches a value that is new enough`() {
    for result in State.RequestResult.allCases {
      var state = State()
      #expect(state.begin("a", Self.noInterval, at: .zero) == [.refresh("a")])
      #expect(state.setActive(false, at: .seconds(1)) == [])
      #expect(state.setActive(true, at: .seconds(1)) == [])
      #expect(state.endRequest(.refresh("a"), result, isStillDue: false) == (result == .fetched ? [] : [.refresh("a")]))
    }
  }

  @Test func `A request that is still due when it ends is repeated, unless no observer is left`() {
    var state = State()
    #expect(state.begin("a", Self.noInterval, at: .zero) == [.refresh("a")])
    #expect(state.endRequest(.refresh("a"), .fetched, isStillDue: true) == [.refresh("a")])
    state.end("a", Self.noInterval, at: .seconds(2))
    #expect(state.endRequest(.refresh("a"), .fetched, isStillDue: true) == [])
    #expect(state.begin("a", Self.noInterval, at: .seconds(4)) == [.refresh("a")])
  }

  @Test func `If an interval elapses during a refresh that fetches nothing, a reload is due after the refresh`() {
    var state = State()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.invalidate(.key("a")) == [.refresh("a")])
    #expect(state.takeDue(at: .seconds(10)) == [])
    #expect(state.deadline == nil)
    // The value was fresh, so nothing was fetched.
    #expect(state.endRequest(.refresh("a"), .wasFresh, isStillDue: false) == [])
    #expect(state.takeDue(at: .seconds(10)) == [.reload("a")])
  }

  @Test func `A failed reload is repeated as a reload, not as a refresh`() {
    var state = State()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.takeDue(at: .seconds(10)) == [.reload("a")])
    #expect(state.endRequest(.reload("a"), .failed, isStillDue: true) == [.reload("a")])
    #expect(state.setOnline(false, at: .seconds(11)) == [])
    // The interval has elapsed, so the return of the network makes another reload due after the one in progress.
    #expect(state.setOnline(true, at: .seconds(11)) == [])
    #expect(state.endRequest(.reload("a"), .failed, isStillDue: false) == [.reload("a")])
    #expect(state.invalidate(.all) == [])
    // A repository reports no reload as `wasFresh`, but the state machine accepts it. Only the refresh that became due
    // meanwhile is requested.
    #expect(state.endRequest(.reload("a"), .wasFresh, isStillDue: false) == [.refresh("a")])
  }

  @Test func `A fetch for previous observers counts for new ones that subscribe before it ends, unless it fails`() {
    let noStopTimeout = LoadingSchedule(stopTimeout: .zero, every: nil)
    for result in [State.RequestResult.fetched, .failed] {
      var state = State()
      #expect(state.begin("a", noStopTimeout, at: .zero) == [.refresh("a")])
      state.end("a", noStopTimeout, at: .seconds(1))
      #expect(state.takeDue(at: .seconds(1)) == [])
      #expect(state.count == 1)
      #expect(state.begin("a", noStopTimeout, at: .seconds(2)) == [])
      let isRepeated = result == .failed
      #expect(state.endRequest(.refresh("a"), result, isStillDue: false) == (isRepeated ? [.refresh("a")] : []))
      state.end("a", noStopTimeout, at: .seconds(3))
      #expect(state.takeDue(at: .seconds(3)) == [])
      if isRepeated { #expect(state.endRequest(.refresh("a"), .failed, isStillDue: false) == []) }
      #expect(state.count == 0)
    }
  }

  @Test func `Memory use depends only on the number of observed keys`() {
    var state = State()
    let daily = LoadingSchedule(stopTimeout: .seconds(86_400), every: .seconds(86_400))
    #expect(complete(state.begin("a", daily, at: .zero), &state, at: .zero) == [.refresh("a")])
    for second in 0..<10_000 {
      state.recordLoad(of: "a", at: .seconds(second))
      state.end("a", daily, at: .seconds(second))
      #expect(state.begin("a", daily, at: .seconds(second)) == [])
      // If there are more than 34 alarms (two for each observed key, plus 32), a new alarm first removes the outdated
      // ones. So there are never more than 35.
      #expect(state.alarmCount <= 35)
    }
    #expect(state.count == 1)
    #expect(state.takeDue(at: .seconds(9_998 + 86_400)) == [])
    #expect(state.takeDue(at: .seconds(9_999 + 86_400)) == [.reload("a")])
  }

  /// A naive model of the state machine: it checks every second whether a fetch is due.
  private struct Model {
    struct Observation {
      /// The schedules that have observers; `State.end` is called when the last observer of one is gone.
      var schedules: Set<LoadingSchedule>
      var lastLoad: Int
      var stopTime: Int?
      /// Whether an elapsed interval causes a request.
      var isArmed = true
      var hasMissedRequest = false
      var isFetching = false
      /// The request that became due since the one in progress began.
      var newRequest: State.Request?
      var hasStopped = false
    }

    var observations: [(key: String, observation: Observation)] = []
    var isActive = true
    var isOnline = true

    mutating func edit<R>(_ key: String, _ body: (inout Observation) -> R) -> R? {
      guard let index = observations.firstIndex(where: { $0.key == key }) else { return nil }
      return body(&observations[index].observation)
    }

    mutating func request(_ key: String, isReload: Bool = false) -> [State.Request] {
      let canFetch = isActive && isOnline
      let isMadeNow = edit(key) { observation in
        observation.hasMissedRequest = !canFetch || observation.schedules.isEmpty
        if observation.hasMissedRequest { return false }
        if observation.isFetching {
          if isReload || observation.newRequest == nil {
            observation.newRequest = isReload ? .reload(key) : .refresh(key)
          }
          return false
        }
        (observation.isFetching, observation.isArmed) = (true, false)
        return true
      }
      return isMadeNow == true ? [isReload ? .reload(key) : .refresh(key)] : []
    }

    func isReloadDue(_ observation: Observation, at now: Int) -> Bool {
      let interval = observation.schedules.compactMap(\.every).min()
      return interval.map { .seconds(observation.lastLoad) + $0 <= .seconds(now) } ?? false
    }

    mutating func requestAll(at now: Int) -> [State.Request] {
      var requests: [State.Request] = []
      for (key, _) in observations { requests += requestReloadOrRefresh(key, at: now) }
      return requests
    }

    mutating func requestReloadOrRefresh(_ key: String, at now: Int) -> [State.Request] {
      let isReloadDue = observations.first { $0.key == key }.map { self.isReloadDue($0.observation, at: now) } ?? false
      if isReloadDue { edit(key) { $0.isArmed = false } }
      return request(key, isReload: isReloadDue)
    }

    mutating func forgetStopped() {
      observations.removeAll { $0.observation.hasStopped && !$0.observation.isFetching }
    }

    mutating func endRequest(
      _ endedRequest: State.Request, _ result: State.RequestResult, isStillDue: Bool
    ) -> [State.Request] {
      let key = endedRequest.key
      var due: [State.Request] = []
      edit(key) { observation in
        guard observation.isFetching else { return }
        if !observation.hasStopped {
          let newRequest = result == .fetched ? nil : observation.newRequest
          due = [isStillDue ? endedRequest : nil, newRequest].compactMap(\.self)
        }
        (observation.isFetching, observation.newRequest) = (false, nil)
        if !observation.schedules.isEmpty { observation.isArmed = true }
      }
      forgetStopped()
      // If the request didn't fail, the value was fetched or found fresh, so a refresh suffices, even if a reload is
      // due.
      return due.isEmpty ? [] : request(key, isReload: result == .failed && due.contains(.reload(key)))
    }

    /// Returns the requests that are due, and ends the observations whose stop timeout has passed.
    mutating func takeDue(at now: Int) -> Set<State.Request> {
      for (key, observation) in observations where observation.stopTime.map({ $0 <= now }) ?? false {
        edit(key) { ($0.stopTime, $0.hasStopped) = (nil, true) }
      }
      forgetStopped()
      var requests: Set<State.Request> = []
      for (key, observation) in observations where observation.isArmed && isReloadDue(observation, at: now) {
        edit(key) { $0.isArmed = false }
        requests.formUnion(request(key, isReload: true))
      }
      return requests
    }
  }

  @Test(arguments: 0..<UInt64(Rounds.count(60, full: 300))) func `Random histories make the same requests as the model`(
    seed: UInt64
  ) {
    var random = SplitMix64(seed: seed)
    var (state, model) = (State(), Model())
    let schedules = [Self.noInterval, Self.every10Seconds, Self.every4Seconds]
    for second in 0..<60 {
      let now = Duration.seconds(second)
      // Requests that are due at the same time have no fixed order.
      let dueRequests = state.takeDue(at: now)
      #expect(Set(dueRequests) == model.takeDue(at: second))
      #expect(dueRequests.count == Set(dueRequests).count)
      let key = ["a", "b", "c"].randomElement(using: &random)!
      let schedule = schedules.randomElement(using: &random)!
      switch Int.random(in: 0..<11, using: &random) {
      case 0, 1, 2:
        let wasKnown = model.observations.contains { $0.key == key }
        if !wasKnown { model.observations.append((key, Model.Observation(schedules: [], lastLoad: second))) }
        let causesRequest = model.edit(key) { observation in
          let isFirstObserver = observation.schedules.isEmpty
          let isNewObservation = !wasKnown || observation.hasStopped
          if observation.schedules.insert(schedule).inserted { observation.isArmed = !observation.isFetching }
          (observation.stopTime, observation.hasStopped) = (nil, false)
          return isFirstObserver && (isNewObservation || observation.hasMissedRequest)
        }
        let expected = causesRequest == true ? model.requestReloadOrRefresh(key, at: second) : []
        #expect(state.begin(key, schedule, at: now) == expected)
      case 3, 4:
        model.edit(key) { observation in
          guard observation.schedules.remove(schedule) != nil else { return }
          observation.isArmed = !observation.isFetching
          if observation.schedules.isEmpty {
            observation.stopTime = second + Int(schedule.stopTimeout.components.seconds)
          }
        }
        state.end(key, schedule, at: now)
      case 5:
        model.edit(key) { observation in
          observation.lastLoad = second
          if !observation.schedules.isEmpty { observation.isArmed = !observation.isFetching }
        }
        state.recordLoad(of: key, at: now)
      case 6:
        let isActive = Bool.random(using: &random)
        let wasActive = model.isActive
        model.isActive = isActive
        #expect(state.setActive(isActive, at: now) == (isActive && !wasActive ? model.requestAll(at: second) : []))
      case 7:
        let isOnline = Bool.random(using: &random)
        let wasOnline = model.isOnline
        model.isOnline = isOnline
        #expect(state.setOnline(isOnline, at: now) == (isOnline && !wasOnline ? model.requestAll(at: second) : []))
      case 8:
        #expect(state.invalidate(.all) == model.observations.flatMap { model.request($0.key) })
      case 9:
        #expect(state.invalidate(.key(key)) == model.request(key))
      default:
        let endedRequest = [State.Request.refresh(key), .reload(key)].randomElement(using: &random)!
        let result = State.RequestResult.allCases.randomElement(using: &random)!
        let isStillDue = Bool.random(using: &random)
        let expected = model.endRequest(endedRequest, result, isStillDue: isStillDue)
        #expect(state.endRequest(endedRequest, result, isStillDue: isStillDue) == expected)
      }
      // The next deadline isn't later than the earliest end of a running interval. Keys that are being fetched don't
      // count.
      let deadlines = model.observations.compactMap { _, observation in
        observation.schedules.compactMap(\.every).min().map { .seconds(observation.lastLoad) + $0 }
          .flatMap { (deadline: Duration) in observation.isFetching || deadline <= now ? nil : deadline }
      }
      // A missing deadline counts as a late one.
      if let firstDeadline = deadlines.min() { #expect((state.deadline ?? .seconds(1_000)) <= firstDeadline) }
      #expect(state.count == model.observations.count)
    }
  }
}
