import Repository
import Testing

/// The version guard and the pending edits together, as a repository uses them.
@Suite struct EditsOverRepliesTests {
  /// A server and a repository, whose value is the set of the mutations the server has made.
  private struct Repository {
    let isMutation: (Int) -> Bool
    /// Whether the store's observers hear of a save before the one who saves.
    let arrivesFirst: Bool
    var guardian = VersionGuard()
    var edits = PendingEdits<Set<Int>, Int>()
    var stored: Set<Int> = []
    var revision: UInt64 = 0
    var tickets: [Int: VersionGuard.Ticket] = [:]
    var made: Set<Int> = []
    var replies: [Int: Set<Int>] = [:]
    var tapped: Set<Int> = []

    init(arrivesFirst: Bool, isMutation: @escaping (Int) -> Bool) {
      self.arrivesFirst = arrivesFirst
      self.isMutation = isMutation
    }

    mutating func perform(_ step: Interleavings.Step) {
      switch step {
      case .begin(let request):
        tickets[request] = guardian.begin()
        if isMutation(request) {
          tapped.insert(request)
          edits.add(request) { $0.insert(request) }
        }
      case .serve(let request):
        if isMutation(request) { made.insert(request) }
        replies[request] = made
      case .arrive(let request):
        guard guardian.accept(tickets[request]!) else {
          if isMutation(request) { edits.confirm(request, at: guardian.begin()) }
          return
        }
        revision += 1
        stored = replies[request]!
        if arrivesFirst { edits.arrived(revision) }
        edits.saved(revision, requestedAt: tickets[request]!)
        if isMutation(request) { edits.confirm(request, savedAs: revision) }
        if !arrivesFirst { edits.arrived(revision) }
      }
    }

    var shown: Set<Int> { edits.value(over: stored) }
  }

  /// The number of requests, and which of them are mutations: all of three, and of four two to each kind.
  static let cases = (0..<8).map { (3, $0) } + [(4, 0b0101), (4, 0b1010)]

  @Test(arguments: cases, [false, true])
  func `What the user has done is seen from then on, in every interleaving`(
    requests: (count: Int, mutations: Int), arrivesFirst: Bool
  ) {
    var search = Interleavings(requests: requests.count)
    search.forEach { steps in
      var repository = Repository(arrivesFirst: arrivesFirst) { $0 < 4 && requests.mutations >> $0 & 1 == 1 }
      for (index, step) in steps.enumerated() {
        repository.perform(step)
        if repository.shown != repository.tapped { return "after \(index) \(repository.shown) is shown" }
      }
      // A fetch when all is quiet leaves no edit behind.
      for step: Interleavings.Step in [.begin(4), .serve(4), .arrive(4)] { repository.perform(step) }
      if !repository.edits.isEmpty { return "\(repository.edits.ids) is still pending" }
      if repository.stored != repository.made { return "\(repository.stored) is stored" }
      return nil
    }
    #expect(search.fault == nil)
  }
}
