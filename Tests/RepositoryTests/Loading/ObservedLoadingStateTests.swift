import MulticastTesting
import Testing

@testable import Repository

@Suite struct ObservedLoadingStateTests {
  typealias State = ObservedLoadingState<String>

  private static let plain = LoadingSchedule(stopTimeout: .seconds(5), every: nil)
  private static let often = LoadingSchedule(stopTimeout: .seconds(5), every: .seconds(10))
  private static let oftener = LoadingSchedule(stopTimeout: .seconds(1), every: .seconds(4))

  @Test func `The first observer fetches, and the others don't`() {
    var state = State()
    #expect(state.begin("a", Self.plain, at: .zero) == [.refresh("a")])
    #expect(state.begin("a", Self.often, at: .seconds(1)) == [])
    #expect(state.begin("b", Self.plain, at: .seconds(1)) == [.refresh("b")])
  }

  @Test func `An observer that is back in time doesn't fetch`() {
    var state = State()
    #expect(state.begin("a", Self.plain, at: .zero) == [.refresh("a")])
    state.end("a", Self.plain, at: .seconds(1))
    #expect(state.takeDue(at: .seconds(5)) == [])
    #expect(state.begin("a", Self.plain, at: .seconds(5)) == [])
    state.end("a", Self.plain, at: .seconds(7))
    #expect(state.deadline == .seconds(6))
    #expect(state.takeDue(at: .seconds(11)) == [])
    #expect(state.deadline == .seconds(12))
    #expect(state.takeDue(at: .seconds(12)) == [])
    #expect(state.count == 0)
    #expect(state.begin("a", Self.plain, at: .seconds(12)) == [.refresh("a")])
  }

  @Test func `The time between two fetches is counted from the end of the last one`() {
    var state = State()
    #expect(state.begin("a", Self.often, at: .zero) == [.refresh("a")])
    state.recordLoad(of: "a", at: .seconds(3))
    #expect(state.takeDue(at: .seconds(12)) == [])
    #expect(state.deadline == .seconds(13))
    #expect(state.takeDue(at: .seconds(13)) == [.reload("a")])
    // The fetch goes on.
    #expect(state.takeDue(at: .seconds(30)) == [])
    #expect(state.deadline == nil)
    state.recordLoad(of: "a", at: .seconds(31))
    #expect(state.deadline == .seconds(41))
  }

  @Test func `Of several observers the shortest time counts, for as long as they are there`() {
    var state = State()
    #expect(state.begin("a", Self.often, at: .zero) == [.refresh("a")])
    #expect(state.begin("a", Self.oftener, at: .seconds(1)) == [])
    #expect(state.takeDue(at: .seconds(4)) == [.reload("a")])
    state.recordLoad(of: "a", at: .seconds(5))
    state.end("a", Self.oftener, at: .seconds(6))
    #expect(state.takeDue(at: .seconds(14)) == [])
    #expect(state.takeDue(at: .seconds(15)) == [.reload("a")])
  }

  @Test func `Nothing is fetched without an observer, and made up for when one is back`() {
    var state = State()
    #expect(state.begin("a", Self.often, at: .zero) == [.refresh("a")])
    state.end("a", Self.often, at: .seconds(8))
    #expect(state.takeDue(at: .seconds(11)) == [])
    #expect(state.invalidate(.key("a")) == [])
    #expect(state.begin("a", Self.plain, at: .seconds(12)) == [.refresh("a")])
    state.end("a", Self.plain, at: .seconds(13))
    #expect(state.begin("a", Self.plain, at: .seconds(14)) == [])
  }

  @Test func `An interval that passed while nobody observed is due when an observer is back`() {
    var state = State()
    #expect(state.begin("a", Self.often, at: .zero) == [.refresh("a")])
    state.end("a", Self.often, at: .seconds(8))
    #expect(state.takeDue(at: .seconds(12)) == [])
    #expect(state.begin("a", Self.often, at: .seconds(12)) == [])
    #expect(state.takeDue(at: .seconds(12)) == [.reload("a")])
  }

  @Test func `An app that becomes active fetches what is observed, once`() {
    var state = State()
    for key in ["b", "a"] { #expect(state.begin(key, Self.plain, at: .zero) == [.refresh(key)]) }
    #expect(state.setActive(true, at: .seconds(1)) == [])
    #expect(state.setActive(false, at: .seconds(1)) == [])
    #expect(state.begin("c", Self.often, at: .seconds(1)) == [])
    #expect(state.takeDue(at: .seconds(20)) == [])
    #expect(state.setActive(true, at: .seconds(20)) == [.refresh("b"), .refresh("a"), .reload("c")])
    #expect(state.setActive(true, at: .seconds(20)) == [])
  }

  @Test func `Nothing is fetched while the network is away or the app is inactive`() {
    var state = State()
    #expect(state.setOnline(false, at: .zero) == [])
    #expect(state.begin("a", Self.plain, at: .zero) == [])
    #expect(state.invalidate(.all) == [])
    #expect(state.setActive(false, at: .seconds(1)) == [])
    #expect(state.setOnline(true, at: .seconds(2)) == [])
    #expect(state.setActive(true, at: .seconds(3)) == [.refresh("a")])
  }

  @Test func `Observed keys that become stale are fetched, in the order in which they were observed`() {
    var state = State()
    for key in ["b", "a", "c"] { #expect(state.begin(key, Self.plain, at: .zero) == [.refresh(key)]) }
    state.end("a", Self.plain, at: .seconds(1))
    #expect(state.invalidate(.all) == [.refresh("b"), .refresh("c")])
    #expect(state.invalidate(.key("c")) == [.refresh("c")])
    #expect(state.invalidate(.key("d")) == [])
    #expect(state.begin("a", Self.plain, at: .seconds(2)) == [.refresh("a")])
  }

  /// Says the same in the simplest way: looks at every second whether a fetch is due.
  private struct Model {
    struct Observation {
      var schedules: Set<LoadingSchedule>
      var lastLoad: Int
      var stop: Int?
      /// Whether an interval that passes is noticed.
      var isArmed = true
      var hasMissedRequest = false
    }

    var observations: [(key: String, Observation)] = []
    var isActive = true
    var isOnline = true

    mutating func edit<R>(_ key: String, _ body: (inout Observation) -> R) -> R? {
      guard let index = observations.firstIndex(where: { $0.key == key }) else { return nil }
      return body(&observations[index].1)
    }

    mutating func request(_ key: String, isReload: Bool = false) -> [State.Request] {
      let canLoad = isActive && isOnline
      let isPossible = edit(key) { observation in
        observation.hasMissedRequest = !canLoad || observation.schedules.isEmpty
        return !observation.hasMissedRequest
      }
      return isPossible == true ? [isReload ? .reload(key) : .refresh(key)] : []
    }

    func isDue(_ observation: Observation, at now: Int) -> Bool {
      let interval = observation.schedules.compactMap(\.every).min()
      return interval.map { .seconds(observation.lastLoad) + $0 <= .seconds(now) } ?? false
    }

    mutating func requestAll(at now: Int) -> [State.Request] {
      var requests: [State.Request] = []
      for (key, observation) in observations {
        let isDue = isDue(observation, at: now)
        if isDue { edit(key) { $0.isArmed = false } }
        requests += request(key, isReload: isDue)
      }
      return requests
    }

    /// What the passing of time brings.
    mutating func takeDue(at now: Int) -> Set<State.Request> {
      observations.removeAll { $0.1.stop.map { $0 <= now } ?? false }
      var requests: Set<State.Request> = []
      for (key, observation) in observations where observation.isArmed && isDue(observation, at: now) {
        edit(key) { $0.isArmed = false }
        requests.formUnion(request(key, isReload: true))
      }
      return requests
    }
  }

  @Test(arguments: 0..<300) func `Any history makes the requests of the model`(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var (state, model) = (State(), Model())
    let schedules = [Self.plain, Self.often, Self.oftener]
    for now in 0..<60 {
      let time = Duration.seconds(now)
      // Those that are due at the same time come in any order.
      let due = state.takeDue(at: time)
      #expect(Set(due) == model.takeDue(at: now))
      #expect(due.count == Set(due).count)
      let key = ["a", "b", "c"].randomElement(using: &random)!
      let schedule = schedules.randomElement(using: &random)!
      switch Int.random(in: 0..<9, using: &random) {
      case 0, 1, 2:
        let isNew = !model.observations.contains { $0.key == key }
        if isNew { model.observations.append((key, Model.Observation(schedules: [], lastLoad: now))) }
        let isBack = model.edit(key) { observation in
          defer {
            if observation.schedules.insert(schedule).inserted { observation.isArmed = true }
            observation.stop = nil
          }
          return observation.schedules.isEmpty && observation.hasMissedRequest
        }
        let expected = isNew || isBack == true ? model.request(key) : []
        #expect(state.begin(key, schedule, at: time) == expected)
      case 3, 4:
        model.edit(key) { observation in
          guard observation.schedules.remove(schedule) != nil else { return }
          observation.isArmed = true
          if observation.schedules.isEmpty { observation.stop = now + Int(schedule.stopTimeout.components.seconds) }
        }
        state.end(key, schedule, at: time)
      case 5:
        model.edit(key) { ($0.lastLoad, $0.isArmed) = (now, true) }
        state.recordLoad(of: key, at: time)
      case 6:
        let isActive = Bool.random(using: &random)
        let wasActive = model.isActive
        model.isActive = isActive
        #expect(state.setActive(isActive, at: time) == (isActive && !wasActive ? model.requestAll(at: now) : []))
      case 7:
        let isOnline = Bool.random(using: &random)
        let wasOnline = model.isOnline
        model.isOnline = isOnline
        #expect(state.setOnline(isOnline, at: time) == (isOnline && !wasOnline ? model.requestAll(at: now) : []))
      default:
        #expect(state.invalidate(.key(key)) == model.request(key))
      }
      #expect(state.count == model.observations.count)
    }
  }
}
