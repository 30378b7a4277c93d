import MulticastTesting
import TestRounds
import Testing

@testable import Repository

@Suite struct ObservedLoadingStateTests {
  typealias State = ObservedLoadingState<String>

  private static let noInterval = LoadingSchedule(stopTimeout: .seconds(5), every: nil)
  private static let every10Seconds = LoadingSchedule(stopTimeout: .seconds(5), every: .seconds(10))
  private static let every4Seconds = LoadingSchedule(stopTimeout: .seconds(1), every: .seconds(4))

  /// Creates a state machine without random delays, unless a generator is given.
  private static func makeState(
    slotCount: Int = 100, random: any RandomNumberGenerator & Sendable = NoDelays()
  ) -> State {
    State(slotCount: slotCount, random: random)
  }

  /// Completes the requests at the given time, each with a fetched value, and returns them.
  private func complete(_ requests: [State.Request], _ state: inout State, at now: Duration) -> [State.Request] {
    for request in requests {
      state.recordLoad(of: request.key, at: now)
      #expect(state.endRequest(request, .fetched, isStillDue: false, at: now) == [])
    }
    return requests
  }

  @Test func `Only the first observer of a key causes a fetch`() {
    var state = Self.makeState()
    #expect(complete(state.begin("a", Self.noInterval, at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.begin("a", Self.every10Seconds, at: .seconds(1)) == [])
    #expect(state.begin("b", Self.noInterval, at: .seconds(1)) == [.refresh("b")])
    #expect(state.begin("b", Self.noInterval, at: .seconds(1)) == [])
  }

  @Test func `An observer that returns before the stop timeout doesn't cause a fetch`() {
    var state = Self.makeState()
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
    var state = Self.makeState()
    #expect(state.begin("a", Self.every10Seconds, at: .zero) == [.refresh("a")])
    state.recordLoad(of: "a", at: .seconds(3))
    #expect(state.endRequest(.refresh("a"), .fetched, isStillDue: false, at: .seconds(3)) == [])
    #expect(state.takeDue(at: .seconds(12)) == [])
    #expect(state.deadline == .seconds(13))
    #expect(state.takeDue(at: .seconds(13)) == [.reload("a")])
    // The fetch is still in progress.
    #expect(state.takeDue(at: .seconds(30)) == [])
    #expect(state.deadline == nil)
    state.recordLoad(of: "a", at: .seconds(31))
    #expect(state.endRequest(.reload("a"), .fetched, isStillDue: false, at: .seconds(31)) == [])
    #expect(state.deadline == .seconds(41))
  }

  @Test func `An interval is also measured from a fetch that ended before the first observer subscribed`() {
    var state = Self.makeState()
    #expect(state.begin("a", Self.every10Seconds, lastLoad: .seconds(-4), at: .zero) == [.refresh("a")])
    #expect(state.endRequest(.refresh("a"), .wasFresh, isStillDue: false, at: .seconds(1)) == [])
    #expect(state.takeDue(at: .seconds(5)) == [])
    #expect(state.takeDue(at: .seconds(6)) == [.reload("a")])
    #expect(state.begin("b", Self.every10Seconds, lastLoad: .seconds(-10), at: .seconds(6)) == [.reload("b")])
    #expect(state.takeDue(at: .seconds(6)) == [])
  }

  @Test func `The shortest interval of the current observers applies`() {
    var state = Self.makeState()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.begin("a", Self.every4Seconds, at: .seconds(1)) == [])
    #expect(complete(state.takeDue(at: .seconds(4)), &state, at: .seconds(5)) == [.reload("a")])
    state.end("a", Self.every4Seconds, at: .seconds(6))
    #expect(state.takeDue(at: .seconds(14)) == [])
    #expect(state.takeDue(at: .seconds(15)) == [.reload("a")])
  }

  @Test func `A fetch that becomes due without an observer is made when an observer returns`() {
    var state = Self.makeState()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    state.end("a", Self.every10Seconds, at: .seconds(8))
    #expect(state.takeDue(at: .seconds(11)) == [])
    #expect(state.invalidate(.key("a"), at: .seconds(11)) == [])
    #expect(complete(state.begin("a", Self.noInterval, at: .seconds(12)), &state, at: .seconds(12)) == [.refresh("a")])
    state.end("a", Self.noInterval, at: .seconds(13))
    #expect(state.begin("a", Self.noInterval, at: .seconds(14)) == [])
  }

  @Test func `A missed fetch and an elapsed interval cause only one request when an observer returns`() {
    var state = Self.makeState()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    state.end("a", Self.every10Seconds, at: .seconds(8))
    #expect(state.invalidate(.key("a"), at: .seconds(9)) == [])
    #expect(state.begin("a", Self.every10Seconds, at: .seconds(12)) == [.reload("a")])
    #expect(state.takeDue(at: .seconds(12)) == [])
  }

  @Test func `If an interval elapses without an observer, a reload is due when an observer returns`() {
    var state = Self.makeState()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    state.end("a", Self.every10Seconds, at: .seconds(8))
    #expect(state.takeDue(at: .seconds(12)) == [])
    #expect(state.begin("a", Self.every10Seconds, at: .seconds(12)) == [])
    #expect(state.takeDue(at: .seconds(12)) == [.reload("a")])
  }

  @Test func `An app that becomes active fetches observed values once`() {
    var state = Self.makeState()
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
    var state = Self.makeState()
    #expect(state.setOnline(false, at: .zero) == [])
    #expect(state.begin("a", Self.noInterval, at: .zero) == [])
    #expect(state.invalidate(.all, at: .zero) == [])
    #expect(state.setActive(false, at: .seconds(1)) == [])
    #expect(state.setOnline(true, at: .seconds(2)) == [])
    #expect(state.setActive(true, at: .seconds(3)) == [.refresh("a")])
  }

  @Test func `Observed keys that become stale are fetched in the order in which they were observed`() {
    var state = Self.makeState()
    for key in ["b", "a", "c"] {
      #expect(complete(state.begin(key, Self.noInterval, at: .zero), &state, at: .zero) == [.refresh(key)])
    }
    state.end("a", Self.noInterval, at: .seconds(1))
    let requests = state.invalidate(.all, at: .seconds(1))
    #expect(complete(requests, &state, at: .seconds(1)) == [.refresh("b"), .refresh("c")])
    #expect(state.invalidate(.key("c"), at: .seconds(1)) == [.refresh("c")])
    #expect(state.invalidate(.key("d"), at: .seconds(1)) == [])
    #expect(state.begin("a", Self.noInterval, at: .seconds(2)) == [.refresh("a")])
  }

  @Test func `Requests that become due during a failing fetch are made as one request after it`() {
    var state = Self.makeState()
    #expect(state.begin("a", Self.noInterval, at: .zero) == [.refresh("a")])
    for _ in 0..<100 { #expect(state.invalidate(.key("a"), at: .seconds(1)) == []) }
    #expect(state.setActive(false, at: .seconds(1)) == [])
    #expect(state.setActive(true, at: .seconds(1)) == [])
    #expect(state.endRequest(.refresh("a"), .failed, isStillDue: false, at: .seconds(2)) == [.refresh("a")])
    #expect(state.endRequest(.refresh("a"), .failed, isStillDue: false, at: .seconds(3)) == [])
    // No request is in progress, so this call has no effect.
    #expect(state.endRequest(.refresh("a"), .failed, isStillDue: true, at: .seconds(3)) == [])
  }

  @Test func `Requests that become due during a fetch are dropped if it fetches a value that is new enough`() {
    for result in State.RequestResult.allCases {
      var state = Self.makeState()
      #expect(state.begin("a", Self.noInterval, at: .zero) == [.refresh("a")])
      #expect(state.setActive(false, at: .seconds(1)) == [])
      #expect(state.setActive(true, at: .seconds(1)) == [])
      let repeated = state.endRequest(.refresh("a"), result, isStillDue: false, at: .seconds(2))
      #expect(repeated == (result == .fetched ? [] : [.refresh("a")]))
    }
  }

  @Test func `A request that is still due when it ends is repeated, unless no observer is left`() {
    var state = Self.makeState()
    #expect(state.begin("a", Self.noInterval, at: .zero) == [.refresh("a")])
    #expect(state.endRequest(.refresh("a"), .fetched, isStillDue: true, at: .seconds(1)) == [.refresh("a")])
    state.end("a", Self.noInterval, at: .seconds(2))
    #expect(state.endRequest(.refresh("a"), .fetched, isStillDue: true, at: .seconds(3)) == [])
    #expect(state.begin("a", Self.noInterval, at: .seconds(4)) == [.refresh("a")])
  }

  @Test func `If an interval elapses during a refresh that fetches nothing, a reload is due after the refresh`() {
    var state = Self.makeState()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.invalidate(.key("a"), at: .seconds(9)) == [.refresh("a")])
    #expect(state.takeDue(at: .seconds(10)) == [])
    #expect(state.deadline == nil)
    // The value was fresh, so nothing was fetched.
    #expect(state.endRequest(.refresh("a"), .wasFresh, isStillDue: false, at: .seconds(10)) == [])
    #expect(state.takeDue(at: .seconds(10)) == [.reload("a")])
  }

  @Test func `A failed reload is repeated as a reload, not as a refresh`() {
    var state = Self.makeState()
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.takeDue(at: .seconds(10)) == [.reload("a")])
    #expect(state.endRequest(.reload("a"), .failed, isStillDue: true, at: .seconds(11)) == [.reload("a")])
    #expect(state.setOnline(false, at: .seconds(11)) == [])
    // The interval has elapsed, so the return of the network makes another reload due after the one in progress.
    #expect(state.setOnline(true, at: .seconds(11)) == [])
    #expect(state.endRequest(.reload("a"), .failed, isStillDue: false, at: .seconds(12)) == [.reload("a")])
    #expect(state.invalidate(.all, at: .seconds(12)) == [])
    // A repository reports no reload as `wasFresh`, but the state machine accepts it. Only the refresh that became due
    // meanwhile is requested.
    #expect(state.endRequest(.reload("a"), .wasFresh, isStillDue: false, at: .seconds(13)) == [.refresh("a")])
  }

  @Test func `A fetch for previous observers counts for new ones that subscribe before it ends, unless it fails`() {
    let noStopTimeout = LoadingSchedule(stopTimeout: .zero, every: nil)
    for result in [State.RequestResult.fetched, .failed] {
      var state = Self.makeState()
      #expect(state.begin("a", noStopTimeout, at: .zero) == [.refresh("a")])
      state.end("a", noStopTimeout, at: .seconds(1))
      #expect(state.takeDue(at: .seconds(1)) == [])
      #expect(state.count == 1)
      #expect(state.begin("a", noStopTimeout, at: .seconds(2)) == [])
      let isRepeated = result == .failed
      let repeated = state.endRequest(.refresh("a"), result, isStillDue: false, at: .seconds(2))
      #expect(repeated == (isRepeated ? [.refresh("a")] : []))
      state.end("a", noStopTimeout, at: .seconds(3))
      #expect(state.takeDue(at: .seconds(3)) == [])
      if isRepeated { #expect(state.endRequest(.refresh("a"), .failed, isStillDue: false, at: .seconds(3)) == []) }
      #expect(state.count == 0)
    }
  }

  @Test func `Memory use depends only on the number of observed keys`() {
    var state = Self.makeState()
    let daily = LoadingSchedule(stopTimeout: .seconds(86_400), every: .seconds(86_400))
    #expect(complete(state.begin("a", daily, at: .zero), &state, at: .zero) == [.refresh("a")])
    for second in 0..<10_000 {
      state.recordLoad(of: "a", at: .seconds(second))
      state.end("a", daily, at: .seconds(second))
      #expect(state.begin("a", daily, at: .seconds(second)) == [])
      // If there are more than 34 alarms (two for each observed key, plus 32), a new alarm first removes the outdated
      // ones. So there are never more than 35.
      #expect(state.storedCounts.alarms <= 35)
    }
    #expect(state.count == 1)
    #expect(state.takeDue(at: .seconds(9_998 + 86_400)) == [])
    #expect(state.takeDue(at: .seconds(9_999 + 86_400)) == [.reload("a")])
  }

  // MARK: - Slots

  /// Begins observing keys, whose names are numbers, and returns the requests.
  private func begin(_ keys: Range<Int>, _ state: inout State, at now: Duration = .zero) -> [State.Request] {
    keys.flatMap { state.begin("\($0)", Self.noInterval, at: now) }
  }

  private func refreshes(_ keys: Range<Int>) -> [State.Request] { keys.map { .refresh("\($0)") } }

  @Test func `When the network is back, all of 200 keys are fetched in order, at most eight at a time`() {
    var state = Self.makeState(slotCount: 8)
    #expect(state.setOnline(false, at: .zero) == [])
    #expect(begin(0..<200, &state) == [])
    var requests = state.setOnline(true, at: .seconds(1))
    var inFlight = requests
    // The requests end in another order than they began.
    while let index = inFlight.indices.last.map({ $0 / 2 }) {
      #expect(inFlight.count <= 8)
      let ended = inFlight.remove(at: index)
      state.recordLoad(of: ended.key, at: .seconds(1))
      let next = state.endRequest(ended, .fetched, isStillDue: false, at: .seconds(1))
      requests += next
      inFlight += next
    }
    #expect(requests == refreshes(0..<200))
    #expect(state.deadline == nil)
  }

  @Test func `A request that doesn't end within five seconds releases its slot`() {
    var state = Self.makeState(slotCount: 1)
    #expect(begin(0..<3, &state) == refreshes(0..<1))
    #expect(state.deadline == .seconds(5))
    #expect(state.takeDue(at: .seconds(4)) == [])
    #expect(state.takeDue(at: .seconds(5)) == refreshes(1..<2))
    // The late end of the first request releases no other slot.
    #expect(state.endRequest(.refresh("0"), .failed, isStillDue: false, at: .seconds(6)) == [])
    #expect(state.endRequest(.refresh("1"), .fetched, isStillDue: false, at: .seconds(7)) == refreshes(2..<3))
    // No request waits, so the deadline of the slot doesn't matter.
    #expect(state.deadline == nil)
  }

  @Test func `A hanging request delays no other while another slot is free`() {
    var state = Self.makeState(slotCount: 2)
    #expect(begin(0..<5, &state) == refreshes(0..<2))
    for key in 1..<4 {
      let next = state.endRequest(.refresh("\(key)"), .fetched, isStillDue: false, at: .seconds(1))
      #expect(next == refreshes(key + 1..<key + 2))
    }
  }

  @Test func `A key whose last observer leaves while it waits isn't fetched, and goes to the end if one returns`() {
    var state = Self.makeState(slotCount: 1)
    #expect(begin(0..<4, &state) == refreshes(0..<1))
    for key in ["1", "2"] { state.end(key, Self.noInterval, at: .zero) }
    #expect(state.begin("1", Self.noInterval, at: .seconds(1)) == [])
    for (ended, next) in [("0", "3"), ("3", "1")] {
      #expect(state.endRequest(.refresh(ended), .fetched, isStillDue: false, at: .seconds(1)) == [.refresh(next)])
    }
    #expect(state.endRequest(.refresh("1"), .fetched, isStillDue: false, at: .seconds(2)) == [])
    #expect(state.begin("2", Self.noInterval, at: .seconds(3)) == [.refresh("2")])
  }

  @Test func `A repeated request doesn't overtake those that wait`() {
    var state = Self.makeState(slotCount: 1)
    #expect(begin(0..<3, &state) == refreshes(0..<1))
    #expect(state.endRequest(.refresh("0"), .fetched, isStillDue: true, at: .seconds(1)) == refreshes(1..<2))
    #expect(state.endRequest(.refresh("1"), .fetched, isStillDue: false, at: .seconds(2)) == refreshes(2..<3))
    #expect(state.endRequest(.refresh("2"), .fetched, isStillDue: false, at: .seconds(3)) == refreshes(0..<1))
  }

  @Test func `What waits when the network is lost is requested once when it is back`() {
    var state = Self.makeState(slotCount: 1)
    #expect(begin(0..<3, &state) == refreshes(0..<1))
    #expect(state.setOnline(false, at: .seconds(1)) == [])
    #expect(state.endRequest(.refresh("0"), .fetched, isStillDue: false, at: .seconds(1)) == [])
    #expect(state.takeDue(at: .seconds(100)) == [])
    #expect(state.setOnline(true, at: .seconds(100)) == refreshes(0..<1))
    for key in 0..<3 {
      let next = state.endRequest(.refresh("\(key)"), .wasFresh, isStillDue: false, at: .seconds(101))
      #expect(next == (key < 2 ? refreshes(key + 1..<key + 2) : []))
    }
  }

  @Test func `A waiting reload becomes a refresh if a call fetches the value meanwhile`() {
    var state = Self.makeState(slotCount: 1)
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.begin("b", Self.noInterval, at: .seconds(9)) == [.refresh("b")])
    #expect(state.takeDue(at: .seconds(10)) == [])
    state.recordLoad(of: "a", at: .seconds(11))
    #expect(state.endRequest(.refresh("b"), .fetched, isStillDue: false, at: .seconds(12)) == [.refresh("a")])
    #expect(state.endRequest(.refresh("a"), .wasFresh, isStillDue: false, at: .seconds(12)) == [])
    #expect(state.deadline == .seconds(21))
  }

  @Test func `A waiting refresh becomes a reload if the interval has passed when the network is back`() {
    var state = Self.makeState(slotCount: 1, random: SplitMix64(seed: 1))
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.setOnline(false, at: .seconds(1)) == [])
    #expect(state.setOnline(true, at: .seconds(100)) == [])
    #expect(state.begin("b", Self.noInterval, at: .seconds(100)) == [.refresh("b")])
    #expect(state.invalidate(.key("a"), at: .seconds(100)) == [])
    #expect(state.takeDue(at: .seconds(102)) == [])
    #expect(state.endRequest(.refresh("b"), .fetched, isStillDue: false, at: .seconds(102)) == [.reload("a")])
  }

  @Test func `No interval is measured while a request waits`() {
    var state = Self.makeState(slotCount: 1)
    #expect(begin(0..<2, &state) == refreshes(0..<1))
    #expect(state.begin("1", Self.every4Seconds, at: .zero) == [])
    #expect(state.takeDue(at: .seconds(4)) == [])
    #expect(state.endRequest(.refresh("0"), .fetched, isStillDue: false, at: .seconds(4)) == refreshes(1..<2))
  }

  @Test func `A request that ends after its last observer has left passes its slot on`() {
    let noStopTimeout = LoadingSchedule(stopTimeout: .zero, every: nil)
    var state = Self.makeState(slotCount: 1)
    #expect(state.begin("a", noStopTimeout, at: .zero) == [.refresh("a")])
    #expect(state.begin("b", Self.noInterval, at: .zero) == [])
    state.end("a", noStopTimeout, at: .seconds(1))
    #expect(state.takeDue(at: .seconds(1)) == [])
    #expect(state.endRequest(.refresh("a"), .fetched, isStillDue: false, at: .seconds(2)) == [.refresh("b")])
    #expect(state.count == 1)
  }

  @Test func `Memory use doesn't grow with the number of requests that waited or had a slot`() {
    var state = Self.makeState(slotCount: 2)
    #expect(begin(0..<3, &state) == refreshes(0..<2))
    for _ in 0..<1_000 {
      state.end("2", Self.noInterval, at: .zero)
      #expect(state.begin("2", Self.noInterval, at: .zero) == [])
    }
    #expect(state.storedCounts.places <= 35)
    // The request for `0` hangs, so its slot stays the first.
    for key in (1..<1_001).map({ 1 + $0 % 2 }) {
      let next = state.endRequest(.refresh("\(3 - key)"), .fetched, isStillDue: true, at: .zero)
      #expect(next == refreshes(key..<key + 1))
    }
    #expect(state.storedCounts.slots <= 37)
  }

  // MARK: - Random delays

  @Test func `An interval is extended by at most a tenth, by the same time however often observers come and go`() {
    var (state, variations) = (Self.makeState(random: SplitMix64(seed: 1)), Set<Duration>())
    _ = state.begin("a", Self.every10Seconds, at: .zero)
    for number in 1...100 {
      let now = Duration.seconds(100 * number)
      state.recordLoad(of: "a", at: now)
      #expect(state.endRequest(.refresh("a"), .fetched, isStillDue: false, at: now) == [])
      #expect(state.takeDue(at: now) == [])
      let deadline = state.deadline!
      #expect(state.begin("a", Self.noInterval, at: now) == [])
      state.end("a", Self.noInterval, at: now)
      #expect(state.takeDue(at: now) == [])
      #expect(state.deadline == deadline)
      variations.insert(deadline - now - .seconds(10))
      #expect(state.takeDue(at: deadline) == [.reload("a")])
    }
    #expect(variations.count == 100)
    #expect(variations.min()! >= .zero && variations.min()! < .milliseconds(100))
    #expect(variations.max()! <= .seconds(1) && variations.max()! > .milliseconds(900))
  }

  @Test func `When the network is back or the app is active, fetches begin together after a random delay`() {
    for (maximum, isNetwork) in [(State.maximumReconnectionDelay, true), (State.maximumActivationDelay, false)] {
      var delays: Set<Duration> = []
      for seed in 0..<100 as Range<UInt64> {
        var state = Self.makeState(random: SplitMix64(seed: seed))
        for key in ["a", "b"] { _ = complete(state.begin(key, Self.noInterval, at: .zero), &state, at: .zero) }
        #expect((isNetwork ? state.setOnline(false, at: .zero) : state.setActive(false, at: .zero)) == [])
        #expect((isNetwork ? state.setOnline(true, at: .zero) : state.setActive(true, at: .zero)) == [])
        let deadline = state.deadline!
        delays.insert(deadline)
        #expect(state.takeDue(at: deadline - .nanoseconds(1)) == [])
        #expect(state.takeDue(at: deadline) == [.refresh("a"), .refresh("b")])
        #expect(state.deadline == nil)
      }
      #expect(delays.count == 100)
      #expect(delays.min()! >= .zero && delays.min()! < maximum / 10)
      #expect(delays.max()! <= maximum && delays.max()! > maximum * 9 / 10)
    }
  }

  @Test func `Neither a new observer, an invalidation, nor a reconnection for a call waits for the random delay`() {
    var state = Self.makeState(random: SplitMix64(seed: 1))
    #expect(complete(state.begin("a", Self.noInterval, at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.setOnline(false, at: .zero) == [])
    #expect(state.setOnline(true, at: .zero) == [])
    #expect(state.begin("b", Self.noInterval, at: .zero) == [.refresh("b")])
    #expect(complete(state.invalidate(.key("a"), at: .zero), &state, at: .zero) == [.refresh("a")])
    #expect(state.setOnline(false, at: .zero) == [])
    #expect(state.setOnline(true, isDelayed: false, at: .zero) == [.refresh("a")])
  }

  @Test func `An interval that has passed meanwhile doesn't end the random delay`() {
    var state = Self.makeState(random: SplitMix64(seed: 1))
    #expect(complete(state.begin("a", Self.every10Seconds, at: .zero), &state, at: .zero) == [.refresh("a")])
    // The app was suspended, so no alarm has fired.
    #expect(state.setActive(false, at: .seconds(1)) == [])
    #expect(state.setActive(true, at: .seconds(100)) == [])
    #expect(state.deadline! > .seconds(100))
    #expect(state.takeDue(at: .seconds(101)) == [.reload("a")])
  }

  @Test func `A network that is lost again during the random delay causes no fetch`() {
    var state = Self.makeState(random: SplitMix64(seed: 1))
    #expect(complete(state.begin("a", Self.noInterval, at: .zero), &state, at: .zero) == [.refresh("a")])
    for _ in 0..<2 {
      #expect(state.setOnline(false, at: .zero) == [])
      #expect(state.setOnline(true, at: .zero) == [])
    }
    #expect(state.setOnline(false, at: .zero) == [])
    #expect(state.deadline == nil)
    #expect(state.takeDue(at: .seconds(100)) == [])
  }

  // MARK: - Random histories

  /// A naive model of the state machine: it checks every second what is due.
  private struct Model {
    struct Observation {
      /// The schedules that have observers; `State.end` is called when the last observer of one is gone.
      var schedules: Set<LoadingSchedule> = []
      var lastLoad: Duration
      var intervalVariation: Double
      var stopTime: Duration?
      /// Whether an elapsed interval causes a request.
      var isArmed = true
      var hasMissedRequest = false
      var isFetching = false
      /// The time at which the request in progress releases its slot; `nil` if it has none.
      var slotEnd: Duration?
      /// The request that became due since the one in progress began.
      var newRequest: State.Request?
      var hasStopped = false

      var interval: Duration? { schedules.compactMap(\.every).min() }

      /// The time at which a reload is due.
      var deadline: Duration? { interval.map { lastLoad + $0 + $0 * (0.1 * intervalVariation) } }
    }

    let slotCount: Int
    var random: SplitMix64
    var observations: [(key: String, observation: Observation)] = []
    /// The requests that wait for a slot, in order.
    var queue: [State.Request] = []
    var isActive = true
    var isOnline = true
    var resumption: Duration?

    var canFetch: Bool { isActive && isOnline }

    mutating func edit<R>(_ key: String, _ body: (inout Observation) -> R) -> R? {
      guard let index = observations.firstIndex(where: { $0.key == key }) else { return nil }
      return body(&observations[index].observation)
    }

    mutating func makeFraction() -> Double { Double.random(in: 0..<1, using: &random) }

    mutating func request(_ request: State.Request) {
      let (key, canFetch) = (request.key, canFetch)
      let isDue = edit(key) { observation in
        observation.hasMissedRequest = !canFetch || observation.schedules.isEmpty
        if observation.hasMissedRequest { return false }
        if observation.isFetching, observation.newRequest != .reload(key) { observation.newRequest = request }
        return !observation.isFetching
      }
      guard isDue == true else { return }
      if let index = queue.firstIndex(where: { $0.key == key }) {
        if queue[index] != .reload(key) { queue[index] = request }
      } else {
        queue.append(request)
        edit(key) { $0.isArmed = false }
      }
    }

    /// Returns the waiting requests that get a slot.
    mutating func startWaiting(at now: Duration) -> [State.Request] {
      for (key, observation) in observations where observation.slotEnd.map({ $0 <= now }) ?? false {
        edit(key) { $0.slotEnd = nil }
      }
      let freeCount = max(0, slotCount - observations.count { $0.observation.slotEnd != nil })
      let requests = queue.prefix(freeCount)
      queue.removeFirst(requests.count)
      for request in requests { edit(request.key) { ($0.isFetching, $0.slotEnd) = (true, now + .seconds(5)) } }
      return Array(requests)
    }

    mutating func miss(_ key: String) {
      guard queue.contains(where: { $0.key == key }) else { return }
      queue.removeAll { $0.key == key }
      edit(key) { $0.hasMissedRequest = true }
    }

    mutating func requestReloadOrRefresh(_ key: String, at now: Duration) {
      guard let observation = observations.first(where: { $0.key == key })?.observation else { return }
      let isReloadDue = observation.interval.map { observation.lastLoad + $0 <= now } ?? false
      if isReloadDue { edit(key) { $0.isArmed = false } }
      request(isReloadDue ? .reload(key) : .refresh(key))
    }

    mutating func begin(_ key: String, _ schedule: LoadingSchedule, at now: Duration) -> [State.Request] {
      let wasKnown = observations.contains { $0.key == key }
      if !wasKnown { observations.append((key, Observation(lastLoad: now, intervalVariation: makeFraction()))) }
      let isWaiting = queue.contains { $0.key == key }
      let causesRequest = edit(key) { observation in
        guard observation.schedules.insert(schedule).inserted else { return false }
        let isFirstObserver = observation.schedules.count == 1
        let isNewObservation = !wasKnown || observation.hasStopped
        observation.isArmed = !observation.isFetching && !isWaiting
        (observation.stopTime, observation.hasStopped) = (nil, false)
        return isFirstObserver && (isNewObservation || observation.hasMissedRequest)
      }
      if causesRequest == true { requestReloadOrRefresh(key, at: now) }
      return startWaiting(at: now)
    }

    mutating func end(_ key: String, _ schedule: LoadingSchedule, at now: Duration) {
      let isWaiting = queue.contains { $0.key == key }
      let isLast = edit(key) { observation in
        guard observation.schedules.remove(schedule) != nil else { return false }
        observation.isArmed = !observation.isFetching && !isWaiting
        if observation.schedules.isEmpty { observation.stopTime = now + schedule.stopTimeout }
        return observation.schedules.isEmpty
      }
      if isLast == true { miss(key) }
    }

    mutating func recordLoad(of key: String, at now: Duration) {
      guard observations.contains(where: { $0.key == key }) else { return }
      let (variation, isWaiting) = (makeFraction(), queue.contains { $0.key == key })
      queue = queue.map { $0.key == key ? .refresh(key) : $0 }
      edit(key) { observation in
        (observation.lastLoad, observation.intervalVariation) = (now, variation)
        if !observation.schedules.isEmpty { observation.isArmed = !observation.isFetching && !isWaiting }
      }
    }

    mutating func forgetStopped() {
      observations.removeAll { $0.observation.hasStopped && !$0.observation.isFetching }
    }

    mutating func endRequest(
      _ endedRequest: State.Request, _ result: State.RequestResult, isStillDue: Bool, at now: Duration
    ) -> [State.Request] {
      let key = endedRequest.key
      var due: [State.Request] = []
      let wasFetching = edit(key) { observation in
        guard observation.isFetching else { return false }
        if !observation.hasStopped {
          let newRequest = result == .fetched ? nil : observation.newRequest
          due = [isStillDue ? endedRequest : nil, newRequest].compactMap(\.self)
        }
        (observation.isFetching, observation.slotEnd, observation.newRequest) = (false, nil, nil)
        if !observation.schedules.isEmpty { observation.isArmed = true }
        return true
      }
      guard wasFetching == true else { return [] }
      forgetStopped()
      // If the request didn't fail, the value was fetched or found fresh, so a refresh suffices, even if a reload is
      // due.
      if !due.isEmpty { request(result == .failed && due.contains(.reload(key)) ? .reload(key) : .refresh(key)) }
      return startWaiting(at: now)
    }

    /// Returns the requests that are due, and ends the observations whose stop timeout has passed.
    mutating func takeDue(at now: Duration) -> [State.Request] {
      if let resumption, resumption <= now {
        self.resumption = nil
        for (key, _) in observations { requestReloadOrRefresh(key, at: now) }
      }
      for (key, observation) in observations where observation.stopTime.map({ $0 <= now }) ?? false {
        edit(key) { ($0.stopTime, $0.hasStopped) = (nil, true) }
      }
      forgetStopped()
      let due = observations.filter { $0.observation.isArmed && $0.observation.deadline.map { $0 <= now } ?? false }
      for (key, _) in due.sorted(by: { $0.observation.deadline! < $1.observation.deadline! }) {
        edit(key) { $0.isArmed = false }
        if resumption == nil { request(.reload(key)) }
      }
      return startWaiting(at: now)
    }

    mutating func set(
      isActive: Bool? = nil, isOnline: Bool? = nil, maximumDelay: Duration, at now: Duration
    ) -> [State.Request] {
      let couldFetch = canFetch
      (self.isActive, self.isOnline) = (isActive ?? self.isActive, isOnline ?? self.isOnline)
      if canFetch == couldFetch { return [] }
      if canFetch {
        resumption = now + maximumDelay * makeFraction()
        return takeDue(at: now)
      }
      resumption = nil
      for request in queue { miss(request.key) }
      return []
    }

    mutating func invalidate(_ keys: [String], at now: Duration) -> [State.Request] {
      for key in keys { request(.refresh(key)) }
      return startWaiting(at: now)
    }

    /// The latest time at which `takeDue` must be called again.
    var deadline: Duration? {
      var deadlines = [resumption].compactMap(\.self)
      for (key, observation) in observations {
        let isWaiting = queue.contains { $0.key == key }
        if !observation.isFetching, !isWaiting, observation.isArmed, let deadline = observation.deadline {
          deadlines.append(deadline)
        }
        if !queue.isEmpty, let slotEnd = observation.slotEnd { deadlines.append(slotEnd) }
      }
      return deadlines.min()
    }
  }

  @Test(arguments: 0..<UInt64(Rounds.count(60, full: 300))) func `Random histories make the same requests as the model`(
    seed: UInt64
  ) {
    var random = SplitMix64(seed: seed)
    let slotCount = [1, 2, 100].randomElement(using: &random)!
    // With random delays, no two alarms have the same deadline, so the requests have a fixed order.
    let delays = SplitMix64(seed: ~seed)
    var state = Self.makeState(slotCount: slotCount, random: delays)
    var model = Model(slotCount: slotCount, random: delays)
    let schedules = [Self.noInterval, Self.every10Seconds, Self.every4Seconds]
    for second in 0..<60 {
      let now = Duration.seconds(second)
      #expect(state.takeDue(at: now) == model.takeDue(at: now))
      let key = ["a", "b", "c"].randomElement(using: &random)!
      let schedule = schedules.randomElement(using: &random)!
      switch Int.random(in: 0..<11, using: &random) {
      case 0, 1, 2: #expect(state.begin(key, schedule, at: now) == model.begin(key, schedule, at: now))
      case 3, 4:
        state.end(key, schedule, at: now)
        model.end(key, schedule, at: now)
      case 5:
        state.recordLoad(of: key, at: now)
        model.recordLoad(of: key, at: now)
      case 6:
        let isActive = Bool.random(using: &random)
        let expected = model.set(isActive: isActive, maximumDelay: .milliseconds(250), at: now)
        #expect(state.setActive(isActive, at: now) == expected)
      case 7:
        let (isOnline, isDelayed) = (Bool.random(using: &random), Bool.random(using: &random))
        let expected = model.set(isOnline: isOnline, maximumDelay: isDelayed ? .seconds(2) : .zero, at: now)
        #expect(state.setOnline(isOnline, isDelayed: isDelayed, at: now) == expected)
      case 8: #expect(state.invalidate(.all, at: now) == model.invalidate(model.observations.map(\.key), at: now))
      case 9: #expect(state.invalidate(.key(key), at: now) == model.invalidate([key], at: now))
      default:
        let endedRequest = [State.Request.refresh(key), .reload(key)].randomElement(using: &random)!
        let result = State.RequestResult.allCases.randomElement(using: &random)!
        let isStillDue = Bool.random(using: &random)
        let expected = model.endRequest(endedRequest, result, isStillDue: isStillDue, at: now)
        #expect(state.endRequest(endedRequest, result, isStillDue: isStillDue, at: now) == expected)
      }
      // A missing deadline counts as a late one.
      if let deadline = model.deadline { #expect((state.deadline ?? .seconds(1_000)) <= deadline) }
      #expect(state.count == model.observations.count)
    }
  }
}

/// A generator whose numbers are all zero, so that nothing is delayed at random.
private struct NoDelays: RandomNumberGenerator {
  mutating func next() -> UInt64 { 0 }
}
