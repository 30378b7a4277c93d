import Foundation
import MulticastTesting
import Testing

@testable import Repository

/// The decisions of the queue against a model that looks at everything each time.
@Suite struct MutationQueueStateTests {
  private struct Model {
    enum Status: Equatable { case storing, waiting, locked, sending, dead, deadLocked, requeueing }

    struct Item {
      let number: Int
      let lane: String
      var sequence: UInt64
      /// Where a dead letter that is being written again will be.
      var reserved: UInt64?
      var status: Status
      /// What a ticket says, if somebody has one: that the mutation waits for a later attempt, or is under way.
      var ticketSaysQueued: Bool?

      /// Whether it has a place in its lane.
      var isInLane: Bool { status != .dead && status != .deadLocked }
      var place: UInt64 { reserved ?? sequence }
    }

    var items: [Item] = []
    var backOffs: [String: Duration] = [:]
    var failures: [String: Int] = [:]
    /// The lanes in which an end could not be written down.
    var heldUp: Set<String> = []
    /// Those whose end is known, written down or not.
    var answered: Set<Int> = []
    var isPaused = false
    var now = Duration.zero
    /// When waits that were over were ended last.
    var lastStep = Duration.zero
    let limit: Int

    var sendingCount: Int { items.count { $0.status == .sending } }
    var waitingCount: Int { items.count { [.waiting, .locked, .sending].contains($0.status) } }
    var deadCount: Int { items.count { [.dead, .deadLocked, .requeueing].contains($0.status) } }

    /// The numbers of those that may be sent now: the first of each lane, if nothing is in its way.
    var sendable: Set<Int> {
      guard !isPaused, sendingCount < limit else { return [] }
      var sendable: Set<Int> = []
      for lane in Set(items.map(\.lane)) {
        let line = items.filter { $0.lane == lane && $0.isInLane }
          .sorted { ($0.status == .sending ? 0 : 1, $0.place) < ($1.status == .sending ? 0 : 1, $1.place) }
        guard let first = line.first, first.status == .waiting else { continue }
        if let until = backOffs[lane], until > now { continue }
        sendable.insert(first.number)
      }
      return sendable
    }

    func pick(_ statuses: Status..., using generator: inout SplitMix64) -> Int? {
      items.indices.filter { statuses.contains(items[$0].status) }.randomElement(using: &generator)
    }

    /// A lane in which nothing is left to send begins anew.
    mutating func forgetEmptyLanes() {
      let lanes = Set(items.filter(\.isInLane).map(\.lane))
      backOffs = backOffs.filter { lanes.contains($0.key) }
      failures = failures.filter { lanes.contains($0.key) }
    }

    /// Somebody is told that mutations have to wait; each was under way until now, and they come in order.
    mutating func tell(_ ids: [MutationID]) {
      let told = items.indices.filter { ids.contains(MutationID(rawValue: "\(items[$0].number)")) }
        .sorted { items[$0].sequence < items[$1].sequence }
      #expect(told.map { MutationID(rawValue: "\(items[$0].number)") } == ids)
      for index in told where items[index].ticketSaysQueued != nil {
        #expect(items[index].ticketSaysQueued == false)
        items[index].ticketSaysQueued = true
      }
    }

    func isFirst(_ index: Int) -> Bool {
      let lane = items[index].lane
      return !items.contains {
        $0.lane == lane && $0.isInLane && $0.place < items[index].place
      }
    }
  }

  private func id(_ number: Int) -> MutationID { MutationID(rawValue: "\(number)") }

  private func entry(_ number: Int, _ lane: String) -> MutationEntry<Int> {
    MutationEntry(id: id(number), orderingKey: lane, mutation: number, enqueuedAt: Date(timeIntervalSince1970: 0))
  }

  @Test(arguments: 0..<100 as Range<UInt64>)
  func `What is sent next is what a look at everything says`(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let date = Date(timeIntervalSince1970: 0)
    let limit = Int.random(in: 1...3, using: &generator)
    var state = MutationQueueState<Int>(maximumConcurrentSends: limit)
    var model = Model(limit: limit)
    state.load([])
    for number in 0..<400 {
      switch Int.random(in: 0..<19, using: &generator) {
      case 0...2:
        let lane = ["a", "b", "c", "d"].randomElement(using: &generator)!
        let reserved = state.reserve(entry(number, lane))
        let sequence = try #require(reserved)
        #expect(state.reserve(entry(number, lane)) == nil)
        model.items.append(Model.Item(number: number, lane: lane, sequence: sequence, status: .storing))
      case 3...4:
        guard let index = model.pick(.storing, using: &generator) else { break }
        state.finishReserving(model.items[index].sequence)
        model.items[index].status = .waiting
      case 5:
        guard let index = model.pick(.storing, using: &generator) else { break }
        state.abandon(model.items[index].sequence)
        model.items.remove(at: index)
      case 6:
        guard let index = model.pick(.sending, using: &generator) else { break }
        state.finishSending(id(model.items[index].number))
        model.heldUp.remove(model.items[index].lane)
        model.failures[model.items[index].lane] = nil
        model.items.remove(at: index)
      case 7:
        guard let index = model.pick(.sending, using: &generator) else { break }
        state.refuse(id(model.items[index].number), reason: "no", since: date)
        model.heldUp.remove(model.items[index].lane)
        model.failures[model.items[index].lane] = nil
        model.answered.remove(model.items[index].number)
        model.items[index].status = .dead
        // It has its fate; once it is requeued, there will be another ticket.
        model.items[index].ticketSaysQueued = nil
      case 8...9:
        guard let index = model.pick(.sending, using: &generator) else { break }
        let item = model.items[index]
        // Its end is known.
        if model.heldUp.contains(item.lane) { break }
        model.failures[item.lane, default: 0] += 1
        #expect(state.failures(with: id(item.number)) == model.failures[item.lane])
        let until = model.now + .seconds(Int.random(in: 0...5, using: &generator))
        model.tell(state.backOff(id(item.number), until: until, nextTry: date, reason: "away"))
        model.backOffs[item.lane] = until
        model.items[index].status = .waiting
        // Whoever has a ticket knows that an attempt failed, of this mutation or of one before it.
        for item in model.items where item.lane == model.items[index].lane && item.status == .waiting {
          #expect(item.ticketSaysQueued != false)
        }
      case 10:
        guard let index = model.pick(.sending, using: &generator) else { break }
        let told = state.release(id(model.items[index].number))
        model.items[index].status = .waiting
        model.heldUp.remove(model.items[index].lane)
        model.tell(told)
        if model.isPaused { #expect(!model.items.contains { $0.status == .waiting && $0.ticketSaysQueued == false }) }
      case 11:
        guard let index = model.pick(.waiting, using: &generator) else { break }
        if model.answered.contains(model.items[index].number) {
          #expect(throws: MutationQueueError.alreadySending(id(model.items[index].number))) {
            try state.lockForCancelling(id(model.items[index].number))
          }
          break
        }
        _ = try state.lockForCancelling(id(model.items[index].number))
        model.items[index].status = .locked
      case 12:
        guard let index = model.pick(.locked, using: &generator) else { break }
        let item = model.items[index]
        if Bool.random(using: &generator) {
          state.unlock(id(item.number))
          model.items[index].status = .waiting
        } else {
          state.removeLocked(id(item.number))
          if model.isFirst(index) { model.backOffs[item.lane] = nil }
          model.items.remove(at: index)
        }
      case 13:
        guard let index = model.pick(.dead, .deadLocked, using: &generator) else { break }
        let number = model.items[index].number
        if model.items[index].status == .deadLocked {
          state.removeLocked(id(number))
          model.items.remove(at: index)
        } else if Bool.random(using: &generator) {
          _ = try state.lockDeadLetter(id(number))
          model.items[index].status = .deadLocked
        } else {
          model.items[index].reserved = try state.reserveAgain(id(number)).sequence
          model.items[index].status = .requeueing
        }
      case 14:
        if Bool.random(using: &generator) {
          model.isPaused ? state.resume() : model.tell(state.pause())
          model.isPaused.toggle()
          if model.isPaused { #expect(!model.items.contains { $0.status == .waiting && $0.ticketSaysQueued == false }) }
        } else {
          state.kick()
          model.backOffs = [:]
          model.failures = [:]
        }
      case 15...16:
        guard let index = model.pick(.waiting, .sending, using: &generator) else { break }
        let item = model.items[index]
        // Others that come for a ticket get the one that is there.
        if item.ticketSaysQueued != nil { break }
        let mustWait = state.giveTicket(id(item.number))
        let isBackingOff = model.backOffs[item.lane].map { $0 > model.lastStep } ?? false
        let isHeldUp = model.heldUp.contains(item.lane)
        #expect(mustWait == (item.status == .waiting && (model.isPaused || isBackingOff || isHeldUp)))
        model.items[index].ticketSaysQueued = mustWait
      case 17:
        guard let index = model.pick(.sending, .requeueing, using: &generator) else { break }
        let item = model.items[index]
        if item.status == .sending {
          model.tell(state.holdUp(id(item.number)))
          model.heldUp.insert(item.lane)
          model.answered.insert(item.number)
          // Whoever has its ticket knows its end, and the others that they have to wait for it.
          model.items[index].ticketSaysQueued = nil
          for item in model.items where item.lane == model.items[index].lane && item.status == .waiting {
            #expect(item.ticketSaysQueued != false)
          }
        } else if let reserved = item.reserved {
          model.items[index].reserved = nil
          if Bool.random(using: &generator) {
            state.finishReservingAgain(id(item.number), as: reserved)
            model.items[index].sequence = reserved
            model.items[index].status = .waiting
          } else {
            state.abandonAgain(id(item.number), reserved)
            model.items[index].status = .dead
          }
        }
      default: model.now += .seconds(Int.random(in: 0...3, using: &generator))
      }

      model.forgetEmptyLanes()
      model.lastStep = model.now
      let sendable = model.sendable
      switch state.next(at: model.now) {
      case .send(let entry):
        #expect(sendable.contains(entry.mutation))
        #expect(entry.state == .sending)
        let index = try #require(model.items.firstIndex { $0.number == entry.mutation })
        model.items[index].status = .sending
        if model.items[index].ticketSaysQueued != nil { model.items[index].ticketSaysQueued = false }
        model.backOffs[entry.orderingKey] = nil
      case .wait(let until):
        #expect(sendable == [])
        if let until { #expect(until > model.now) }
        // Whoever waits for time alone is woken by time.
        if !model.isPaused, model.sendingCount < limit {
          let lanes = model.backOffs.filter { lane, deadline in
            deadline > model.now && model.items.contains { $0.lane == lane && $0.status == .waiting }
          }
          if let earliest = lanes.values.min() { #expect(until.map { $0 <= earliest } == true) }
        }
      }
      #expect(state.snapshot.waitingCount == model.waitingCount)
      #expect(state.snapshot.deadCount == model.deadCount)
      #expect(state.snapshot.entries.map(\.mutation) == visible(model))
    }
  }

  private func visible(_ model: Model) -> [Int] {
    model.items.filter { $0.status != .storing }.sorted { $0.sequence < $1.sequence }.map(\.number)
  }

  @Test func `What was copied in the store is taken in once each, in order`() {
    var state = MutationQueueState<Int>(maximumConcurrentSends: 1)
    state.load([(1, entry(1, "a")), (1, entry(2, "a")), (2, entry(1, "a")), (2, entry(3, "a"))])
    #expect(state.snapshot.entries.map(\.mutation) == [1, 2, 3])
    #expect(state.reserve(entry(4, "a")) == 4)
  }

  @Test func `A wait is not ended by the deadline of an earlier one`() throws {
    var state = MutationQueueState<Int>(maximumConcurrentSends: 1)
    let date = Date(timeIntervalSince1970: 0)
    state.load([(1, entry(1, "a")), (2, entry(2, "a"))])
    _ = state.next(at: .zero)
    _ = state.backOff(id(1), until: .seconds(10), nextTry: date, reason: "away")
    _ = try state.lockForCancelling(id(1))
    state.removeLocked(id(1))
    _ = state.next(at: .zero)
    #expect(state.entry(id(2))?.state == .sending)
    _ = state.backOff(id(2), until: .seconds(100), nextTry: date, reason: "away")
    guard case .wait(until: .seconds(100)) = state.next(at: .seconds(10)) else {
      Issue.record("The second wait is not over.")
      return
    }
  }
}
