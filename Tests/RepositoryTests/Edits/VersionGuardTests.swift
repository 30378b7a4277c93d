import Repository
import Testing

@Suite struct VersionGuardTests {
  @Test func `A reply is accepted if its request began after the last accepted reply arrived`() {
    var guardian = VersionGuard()
    let first = guardian.begin()
    #expect(guardian.accept(first) == true)
    let second = guardian.begin()
    let third = guardian.begin()
    #expect(guardian.accept(second) == true)
    #expect(guardian.accept(third) == false)
    let fourth = guardian.begin()
    #expect(guardian.accept(fourth) == true)
  }

  @Test func `A fetch that began before a mutation was confirmed does not overwrite it`() {
    var guardian = VersionGuard()
    let before = guardian.begin()
    let mutation = guardian.begin()
    let meanwhile = guardian.begin()
    #expect(guardian.accept(mutation) == true)
    #expect(guardian.accept(before) == false)
    #expect(guardian.accept(meanwhile) == false)
  }

  @Test func `No reply is accepted twice`() {
    var guardian = VersionGuard()
    let ticket = guardian.begin()
    #expect(guardian.accept(ticket) == true)
    #expect(guardian.accept(ticket) == false)
  }

  @Test func `Later tickets are greater`() {
    var guardian = VersionGuard()
    let earlier = guardian.begin()
    #expect(earlier < guardian.begin())
  }

  @Test(arguments: zip(1...4, [1, 10, 280, 15_400]))
  func `No interleaving of up to four requests shows older after newer`(requests: Int, interleavings: Int) {
    var search = Interleavings(requests: requests) {
      GuardModel { (guardian: inout VersionGuard, ticket) in guardian.accept(ticket) }
    }
    search.run()
    #expect(search.fault == nil)
    #expect(search.count == interleavings)
  }

  @Test func `To go by the order of beginning alone would not do`() {
    var search = Interleavings(requests: 2) {
      var lastAccepted: VersionGuard.Ticket?
      return GuardModel { _, ticket in
        if let last = lastAccepted, ticket < last { return false }
        lastAccepted = ticket
        return true
      }
    }
    search.run()
    // The second is served first, the first one arrives first.
    #expect(search.fault == "begin 0, begin 1, serve 1, serve 0, arrive 0, arrive 1: 1 after 2")
  }

  @Test func `After an acceptance the next request to begin and arrive is accepted`() {
    var guardian = VersionGuard()
    var old: [VersionGuard.Ticket] = []
    for _ in 0..<100 {
      let overlapping = guardian.begin()
      #expect(guardian.accept(guardian.begin()) == true)
      old.append(overlapping)
      for ticket in old { #expect(guardian.accept(ticket) == false) }
    }
  }
}

/// A server whose value changes with every request it serves, and one who watches what is accepted.
private struct GuardModel {
  let accept: (inout VersionGuard, VersionGuard.Ticket) -> Bool
  private var guardian = VersionGuard()
  private var tickets: [Int: VersionGuard.Ticket] = [:]
  private var replies: [Int: Int] = [:]
  private var serverVersion = 0
  private var shown = 0

  init(accept: @escaping (inout VersionGuard, VersionGuard.Ticket) -> Bool) {
    self.accept = accept
  }

  mutating func perform(_ step: Interleavings.Step) -> String? {
    switch step {
    case .begin(let request): tickets[request] = guardian.begin()
    case .serve(let request):
      serverVersion += 1
      replies[request] = serverVersion
    case .arrive(let request):
      guard accept(&guardian, tickets[request]!) else { return nil }
      let version = replies[request]!
      if version < shown { return "\(version) after \(shown)" }
      shown = version
    }
    return nil
  }
}

/// All orders in which requests can begin, be served and arrive; they begin in the order of their numbers.
private struct Interleavings {
  enum Step: CustomStringConvertible {
    case begin(Int)
    case serve(Int)
    case arrive(Int)

    var description: String {
      switch self {
      case .begin(let request): "begin \(request)"
      case .serve(let request): "serve \(request)"
      case .arrive(let request): "arrive \(request)"
      }
    }
  }

  let requests: Int
  let makeModel: () -> GuardModel
  private(set) var count = 0
  private(set) var fault: String?
  private var path: [Step] = []

  init(requests: Int, makeModel: @escaping () -> GuardModel) {
    self.requests = requests
    self.makeModel = makeModel
  }

  mutating func run() {
    extend(progress: Array(repeating: 0, count: requests))
  }

  private mutating func extend(progress: [Int]) {
    if fault != nil { return }
    if progress.allSatisfy({ $0 == 3 }) {
      count += 1
      var model = makeModel()
      for step in path {
        if let fault = model.perform(step) {
          self.fault = path.map(\.description).joined(separator: ", ") + ": " + fault
          return
        }
      }
      return
    }
    for request in 0..<requests where progress[request] < 3 {
      if progress[request] == 0, request > 0, progress[request - 1] == 0 { continue }
      var next = progress
      next[request] += 1
      path.append([Step.begin(request), .serve(request), .arrive(request)][progress[request]])
      extend(progress: next)
      path.removeLast()
    }
  }
}
