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

  @Test func `What came by another way is not overwritten by a reply to a request that began before it was seen`() {
    var guardian = VersionGuard()
    let before = guardian.begin()
    let seen = guardian.begin()
    let after = guardian.begin()
    guardian.overtake(at: seen)
    #expect(guardian.accept(before) == false)
    #expect(guardian.accept(after) == true)
  }

  @Test func `To have seen something long ago does not let older replies in again`() {
    var guardian = VersionGuard()
    let seen = guardian.begin()
    let old = guardian.begin()
    #expect(guardian.accept(guardian.begin()) == true)
    guardian.overtake(at: seen)
    #expect(guardian.accept(old) == false)
  }

  @Test func `A reply that waited to be accepted leaves in those requested after it arrived`() {
    var guardian = VersionGuard()
    let first = guardian.begin()
    let overlapping = guardian.begin()
    let arrival = guardian.begin()
    let later = guardian.begin()
    #expect(guardian.accept(first, arrivedAt: arrival) == true)
    #expect(guardian.accept(overlapping) == false)
    #expect(guardian.accept(later) == true)
  }

  @Test func `Later tickets are greater`() {
    var guardian = VersionGuard()
    let earlier = guardian.begin()
    #expect(earlier < guardian.begin())
  }

  @Test(arguments: zip(1...4, [1, 10, 280, 15_400]))
  func `No interleaving of up to four requests shows older after newer`(requests: Int, orders: Int) {
    var search = Interleavings(requests: requests)
    search.forEach { steps in
      var guardian = VersionGuard()
      return olderAfterNewer(steps, begin: { guardian.begin() }, accept: { guardian.accept($0) })
    }
    #expect(search.fault == nil)
    #expect(search.count == orders)
  }

  @Test func `To go by the order of beginning alone would not do`() {
    var search = Interleavings(requests: 2)
    search.forEach { steps in
      var begun = 0
      var lastAccepted = 0
      return olderAfterNewer(
        steps,
        begin: {
          begun += 1
          return begun
        },
        accept: { ticket in
          if ticket < lastAccepted { return false }
          lastAccepted = ticket
          return true
        })
    }
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

  /// Plays an order on a server whose value changes with every request that it serves; says what went wrong.
  private func olderAfterNewer<Ticket>(
    _ steps: [Interleavings.Step], begin: () -> Ticket, accept: (Ticket) -> Bool
  ) -> String? {
    var tickets: [Int: Ticket] = [:]
    var replies: [Int: Int] = [:]
    var serverVersion = 0
    var shown = 0
    for step in steps {
      switch step {
      case .begin(let request): tickets[request] = begin()
      case .serve(let request):
        serverVersion += 1
        replies[request] = serverVersion
      case .arrive(let request):
        guard accept(tickets[request]!) else { continue }
        if replies[request]! < shown { return "\(replies[request]!) after \(shown)" }
        shown = replies[request]!
      }
    }
    return nil
  }
}
