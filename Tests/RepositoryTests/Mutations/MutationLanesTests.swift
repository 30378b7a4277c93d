import Foundation
import MulticastTesting
import TestRounds
import Testing

@testable import Repository

@Suite struct MutationLanesTests {
  private static func id(_ number: Int) -> MutationID { MutationID(rawValue: "\(number)") }

  /// Makes lanes with one mutation for each of the given lane ids, in order.
  ///
  /// The ids of the mutations are `id(0)`, `id(1)`, and so on.
  private func makeLanes(mutationsIn laneIDs: [LaneID], maximumInFlight: Int = 2) -> MutationLanes {
    var lanes = MutationLanes(maximumInFlight: maximumInFlight, slotTimeout: .seconds(5))
    for (number, laneID) in laneIDs.enumerated() { lanes.append(Self.id(number), lane: laneID, userID: laneID.userID) }
    return lanes
  }

  @Test func `A lane sends its mutations one at a time, in order`() {
    var lanes = makeLanes(mutationsIn: ["a", "a", "a"])
    for number in 0..<3 {
      #expect(lanes.next(at: .zero) == .send(Self.id(number), lane: "a"))
      #expect(lanes.next(at: .zero) == .wait(until: nil))
      lanes.complete(lane: "a")
    }
    #expect(lanes.next(at: .zero) == .wait(until: nil))
    #expect(lanes.isFree("a") == true)
  }

  @Test func `Lanes get free slots in the order in which they became ready`() {
    var lanes = makeLanes(mutationsIn: ["a", "b", "c", "a"])
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: "a"))
    #expect(lanes.next(at: .zero) == .send(Self.id(1), lane: "b"))
    #expect(lanes.next(at: .zero) == .wait(until: .seconds(5)))
    lanes.complete(lane: "a")
    #expect(lanes.next(at: .zero) == .send(Self.id(2), lane: "c"))
    lanes.complete(lane: "b")
    #expect(lanes.next(at: .zero) == .send(Self.id(3), lane: "a"))
  }

  @Test func `A slow send releases its slot, and its lane still waits for the send`() {
    var lanes = makeLanes(mutationsIn: ["a", "b", "c", "a", "d", "e"])
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: "a"))
    #expect(lanes.next(at: .seconds(1)) == .send(Self.id(1), lane: "b"))
    #expect(lanes.next(at: .seconds(4)) == .wait(until: .seconds(5)))
    #expect(lanes.next(at: .seconds(5)) == .send(Self.id(2), lane: "c"))
    #expect(lanes.next(at: .seconds(5)) == .wait(until: .seconds(6)))
    // This attempt has already released its slot, so its end frees none. Slow lanes have slots of their own.
    lanes.complete(lane: "a")
    #expect(lanes.next(at: .seconds(5)) == .send(Self.id(3), lane: "a"))
    #expect(lanes.next(at: .seconds(5)) == .wait(until: .seconds(6)))
    lanes.complete(lane: "b")
    #expect(lanes.next(at: .seconds(5)) == .send(Self.id(4), lane: "d"))
    lanes.complete(lane: "c")
    lanes.complete(lane: "d")
    #expect(lanes.next(at: .seconds(5)) == .send(Self.id(5), lane: "e"))
  }

  @Test func `Lanes whose sends hang delay no other lane a second time`() {
    let hanging: [LaneID] = (0..<6).map { LaneID(userID: nil, orderingKey: "hanging \($0)") }
    var lanes = makeLanes(mutationsIn: hanging + ["a"])
    for number in 0..<6 {
      #expect(lanes.next(at: .seconds(5 * (number / 2))) == .send(Self.id(number), lane: hanging[number]))
    }
    // Two sends at a time delayed the lane once.
    #expect(lanes.next(at: .seconds(14)) == .wait(until: .seconds(15)))
    #expect(lanes.next(at: .seconds(15)) == .send(Self.id(6), lane: "a"))
    lanes.complete(lane: "a")
    for number in 0..<6 {
      lanes.backOff(Self.id(number), lane: hanging[number], until: .seconds(16 + number), isServerDelay: false)
    }
    // They hang again, two at a time.
    for number in 0..<2 {
      #expect(lanes.next(at: .seconds(25)) == .send(Self.id(number), lane: hanging[number]))
    }
    #expect(lanes.next(at: .seconds(25)) == .wait(until: .seconds(30)))
    lanes.append(Self.id(7), lane: "a", userID: nil)
    lanes.append(Self.id(8), lane: "b", userID: nil)
    #expect(lanes.next(at: .seconds(25)) == .send(Self.id(7), lane: "a"))
    #expect(lanes.next(at: .seconds(25)) == .send(Self.id(8), lane: "b"))
    // One that answers in time is no longer slow.
    lanes.complete(lane: hanging[0])
    lanes.append(Self.id(9), lane: hanging[0], userID: nil)
    #expect(lanes.next(at: .seconds(25)) == .send(Self.id(2), lane: hanging[2]))
    lanes.complete(lane: "a")
    #expect(lanes.next(at: .seconds(25)) == .send(Self.id(9), lane: hanging[0]))
  }

  @Test func `If attempts of many lanes fail in a row, one lane at a time tries until the server answers`() {
    let laneIDs = (0..<10).map { LaneID(userID: nil, orderingKey: "\($0)") }
    var lanes = makeLanes(mutationsIn: laneIDs)
    for number in 0..<8 {
      #expect(lanes.next(at: .zero) == .send(Self.id(number), lane: laneIDs[number]))
      let beginsOutage = lanes.backOff(
        Self.id(number), lane: laneIDs[number], until: .milliseconds(993 + number), isServerDelay: false)
      #expect(beginsOutage == (number == 7))
    }
    #expect(lanes.isStalled(laneIDs[8]))
    #expect(!lanes.isFree("new"))
    let isDue = lanes.isDue(at: .zero)
    #expect(!isDue)
    #expect(lanes.report(at: .zero, [])[laneIDs[8]]?.status == .backingOff(.seconds(1)))
    #expect(lanes.next(at: .milliseconds(999)) == .wait(until: .seconds(1)))
    #expect(lanes.next(at: .seconds(1)) == .send(Self.id(8), lane: laneIDs[8]))
    #expect(lanes.next(at: .seconds(1)) == .wait(until: .seconds(6)))
    // The delays grow, although it is the first attempt of the lane.
    #expect(lanes.failuresForDelay(in: laneIDs[8]) == 2)
    lanes.backOff(Self.id(8), lane: laneIDs[8], until: .seconds(3), isServerDelay: false)
    // A new mutation tries at once.
    lanes.append(Self.id(10), lane: "new", userID: nil)
    #expect(lanes.next(at: .seconds(1)) == .send(Self.id(10), lane: "new"))
    lanes.backOff(Self.id(10), lane: "new", until: .seconds(5), isServerDelay: false)
    #expect(lanes.failuresForDelay(in: laneIDs[9]) == 4)
    #expect(lanes.next(at: .seconds(3)) == .wait(until: .seconds(5)))
    #expect(lanes.endOfFirstBackOff(except: []) == .seconds(5))
    #expect(lanes.next(at: .seconds(5)) == .send(Self.id(9), lane: laneIDs[9]))
    #expect(lanes.next(at: .seconds(5)) == .wait(until: .seconds(10)))
    lanes.complete(lane: laneIDs[9])
    for number in 0..<2 { #expect(lanes.next(at: .seconds(5)) == .send(Self.id(number), lane: laneIDs[number])) }
  }

  @Test(arguments: [true, false])
  func `Neither a delay that the server names nor an attempt without a request begins an outage`(
    isServerDelay: Bool
  ) {
    let laneIDs = (0..<9).map { LaneID(userID: nil, orderingKey: "\($0)") }
    var lanes = makeLanes(mutationsIn: laneIDs)
    for number in 0..<8 {
      #expect(lanes.next(at: .zero) == .send(Self.id(number), lane: laneIDs[number]))
      lanes.backOff(
        Self.id(number), lane: laneIDs[number], until: .seconds(1), isServerDelay: isServerDelay, hasRequested: false)
    }
    #expect(lanes.next(at: .zero) == .send(Self.id(8), lane: laneIDs[8]))
  }

  @Test func `Lanes that may have ended a process send alone first, each for a limited time`() {
    var lanes = makeLanes(mutationsIn: ["a", "b", "c"], maximumInFlight: 4)
    lanes.suspect(["a", "b"])
    #expect(!lanes.isFree("d"))
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: "a"))
    #expect(lanes.next(at: .zero) == .wait(until: .seconds(5)))
    lanes.complete(lane: "a")
    #expect(lanes.next(at: .zero) == .send(Self.id(1), lane: "b"))
    #expect(lanes.next(at: .seconds(1)) == .wait(until: .seconds(5)))
    #expect(lanes.next(at: .seconds(5)) == .send(Self.id(2), lane: "c"))
    #expect(lanes.isFree("d"))
    // A suspect without a mutation keeps no other lane waiting.
    lanes.append(Self.id(5), lane: "e", userID: nil)
    lanes.suspect(["e"])
    lanes.remove(Self.id(5), lane: "e")
    lanes.append(Self.id(6), lane: "f", userID: nil)
    #expect(lanes.next(at: .seconds(5)) == .send(Self.id(6), lane: "f"))
    // Nor does one that has to wait.
    lanes.append(Self.id(3), lane: "a", userID: nil, isDurable: false)
    lanes.append(Self.id(4), lane: "d", userID: nil)
    lanes.suspect(["a"])
    #expect(lanes.next(at: .seconds(5)) == .send(Self.id(4), lane: "d"))
  }

  @Test func `A lane waits for the rest of a delay that began in another process`() {
    let start = Date(timeIntervalSinceReferenceDate: 0)
    let backOff = MutationRecord.BackOff(
      failedAt: start, delay: .seconds(30), isServerDelay: true, reason: "busy", failures: 3)
    #expect(backOff.remainder(at: start.addingTimeInterval(10)) == .seconds(20))
    #expect(backOff.remainder(at: start.addingTimeInterval(40)) == .zero)
    // The clocks of the two processes differ.
    #expect(backOff.remainder(at: start.addingTimeInterval(-1_000_000)) == .seconds(30))
    var lanes = makeLanes(mutationsIn: ["a", "a", "b"])
    lanes.resumeBackOff(lane: "a", until: .seconds(20), backOff)
    #expect(lanes.next(at: .zero) == .send(Self.id(2), lane: "b"))
    lanes.retryNow()
    #expect(lanes.next(at: .zero) == .wait(until: .seconds(20)))
    #expect(lanes.next(at: .seconds(20)) == .send(Self.id(0), lane: "a"))
  }

  @Test func `Mutations behind one that this program can't read wait, and those before it don't`() {
    var lanes = makeLanes(mutationsIn: ["a", "a", "b"])
    lanes.hold(Self.id(10), lane: "a") { $0 == Self.id(1) }
    #expect(lanes.isStalled("a"))
    #expect(lanes.upcoming(in: "a", count: 3) == [Self.id(0)])
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: "a"))
    lanes.complete(lane: "a")
    #expect(lanes.next(at: .zero) == .send(Self.id(2), lane: "b"))
    #expect(lanes.next(at: .zero) == .wait(until: nil))
    #expect(lanes.report(at: .zero, [])["a"]?.status == .held)
    lanes.complete(lane: "b")
    #expect(!lanes.hasMutationsToSend)
    lanes.remove(Self.id(10), lane: "a")
    #expect(lanes.next(at: .zero) == .send(Self.id(1), lane: "a"))
  }

  @Test func `After a failed attempt, only the lane of the attempt waits`() {
    var lanes = makeLanes(mutationsIn: ["a", "a", "b"])
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: "a"))
    // `failures(in:)` counts the present attempt as failed, or the next one if none is in flight.
    #expect(lanes.failures(in: "a") == 1)
    lanes.backOff(Self.id(0), lane: "a", until: .seconds(3), isServerDelay: false)
    #expect(lanes.isStalled("a") == true)
    #expect(lanes.failures(in: "a") == 2)
    #expect(lanes.next(at: .zero) == .send(Self.id(2), lane: "b"))
    #expect(lanes.next(at: .zero) == .wait(until: .seconds(3)))
    #expect(lanes.next(at: .seconds(3)) == .send(Self.id(0), lane: "a"))
    lanes.complete(lane: "a")
    #expect(lanes.failures(in: "a") == 1)
    #expect(lanes.next(at: .seconds(3)) == .send(Self.id(1), lane: "a"))
  }

  @Test func `Retrying now ends all backoffs except server delays, and resets the failure counts`() {
    var lanes = makeLanes(mutationsIn: ["a", "b"])
    _ = lanes.next(at: .zero)
    _ = lanes.next(at: .zero)
    lanes.backOff(Self.id(0), lane: "a", until: .seconds(30), isServerDelay: false)
    lanes.backOff(Self.id(1), lane: "b", until: .seconds(60), isServerDelay: true)
    lanes.retryNow()
    #expect(lanes.failures(in: "a") == 1)
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: "a"))
    #expect(lanes.next(at: .zero) == .wait(until: .seconds(60)))
    #expect(lanes.next(at: .seconds(60)) == .send(Self.id(1), lane: "b"))
  }

  @Test func `A lane whose last mutation was removed has no mutation to send, even while it waits for a slot`() {
    var lanes = makeLanes(mutationsIn: ["a", "b"], maximumInFlight: 1)
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: "a"))
    lanes.remove(Self.id(1), lane: "b")
    // The mutation in flight in the lane `a` counts as one to send.
    #expect(lanes.hasMutationsToSend)
    lanes.complete(lane: "a")
    #expect(!lanes.hasMutationsToSend)
  }

  @Test func `Only the lanes of the user who has to sign in wait for the sign-in`() {
    let first = LaneID(userID: "0", orderingKey: "a")
    let second = LaneID(userID: "0", orderingKey: "b")
    let other = LaneID(userID: "1", orderingKey: "c")
    var lanes = makeLanes(mutationsIn: [first, second, other], maximumInFlight: 4)
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: first))
    lanes.release(Self.id(0), lane: first, needsSignIn: true)
    #expect(lanes.usersNeedingSignIn == ["0"])
    #expect(lanes.isStalled(second) == true)
    #expect(lanes.next(at: .zero) == .send(Self.id(2), lane: other))
    #expect(lanes.next(at: .zero) == .wait(until: nil))
    lanes.signedIn(userID: "0")
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: first))
    #expect(lanes.next(at: .zero) == .send(Self.id(1), lane: second))
  }

  @Test func `While a user has to sign in, empty lanes of that user aren't free, and empty lanes of other users are`() {
    let laneID = LaneID(userID: "0", orderingKey: "a")
    let emptyLaneID = LaneID(userID: "0", orderingKey: "b")
    var lanes = makeLanes(mutationsIn: [laneID])
    #expect(lanes.isFree(emptyLaneID) == true)
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: laneID))
    lanes.release(Self.id(0), lane: laneID, needsSignIn: true)
    #expect(lanes.isFree(emptyLaneID) == false)
    #expect(lanes.isFree(LaneID(userID: "1", orderingKey: "b")) == true)
    #expect(lanes.isFree(LaneID(userID: nil, orderingKey: "b")) == true)
    lanes.signedIn(userID: "0")
    #expect(lanes.isFree(emptyLaneID) == true)
  }

  @Test func `An attempt that began before a sign-in and fails after it doesn't make lanes wait for another sign-in`() {
    var lanes = makeLanes(mutationsIn: ["a", "b", "c"], maximumInFlight: 4)
    for _ in 0..<3 { _ = lanes.next(at: .zero) }
    lanes.release(Self.id(0), lane: "a", needsSignIn: true)
    #expect(lanes.isStalled("b") == true)
    lanes.signedIn(userID: nil)
    lanes.release(Self.id(1), lane: "b", needsSignIn: true)
    #expect(lanes.usersNeedingSignIn == [])
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: "a"))
    #expect(lanes.next(at: .zero) == .send(Self.id(1), lane: "b"))
    // The same holds if the send was slow and released its slot.
    #expect(lanes.next(at: .seconds(5)) == .wait(until: nil))
    lanes.release(Self.id(2), lane: "c", needsSignIn: true)
    #expect(lanes.usersNeedingSignIn == [])
    // This attempt began after the sign-in.
    lanes.release(Self.id(0), lane: "a", needsSignIn: true)
    #expect(lanes.usersNeedingSignIn == [nil])
  }

  @Test func `A lane sends nothing while its first mutation isn't durable or is blocked`() {
    var lanes = MutationLanes(maximumInFlight: 4, slotTimeout: .seconds(5))
    lanes.append(Self.id(0), lane: "a", userID: nil, isDurable: false)
    lanes.append(Self.id(1), lane: "a", userID: nil)
    #expect(lanes.next(at: .zero) == .wait(until: nil))
    lanes.unblock(Self.id(0), lane: "a")
    lanes.block(Self.id(0))
    #expect(lanes.next(at: .zero) == .wait(until: nil))
    lanes.remove(Self.id(0), lane: "a")
    #expect(lanes.next(at: .zero) == .send(Self.id(1), lane: "a"))
  }

  @Test func `Removing a mutation that backs off lets the next one be sent`() {
    var lanes = makeLanes(mutationsIn: ["a", "a"])
    _ = lanes.next(at: .zero)
    lanes.backOff(Self.id(0), lane: "a", until: .seconds(60), isServerDelay: false)
    lanes.remove(Self.id(0), lane: "a")
    #expect(lanes.next(at: .zero) == .send(Self.id(1), lane: "a"))
  }

  @Test func `While lanes are paused, nothing is sent, and attempts in flight continue`() {
    var lanes = makeLanes(mutationsIn: ["a", "a", "b"])
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: "a"))
    lanes.pause(.offline)
    #expect(lanes.next(at: .zero) == .wait(until: nil))
    #expect(lanes.isStalled("a") == true)
    #expect(lanes.isFree("c") == false)
    #expect(lanes.allWaiting == [Self.id(1), Self.id(2)])
    lanes.complete(lane: "a")
    #expect(lanes.next(at: .seconds(100)) == .wait(until: nil))
    lanes.retryNow()
    #expect(lanes.next(at: .seconds(100)) == .wait(until: nil))
    lanes.resume(.offline)
    #expect(lanes.next(at: .seconds(100)) == .send(Self.id(2), lane: "b"))
    #expect(lanes.next(at: .seconds(100)) == .send(Self.id(1), lane: "a"))
  }

  @Test func `Of two delays in a row, a fetch ends only the first, and none shrinks`() {
    var lanes = makeLanes(mutationsIn: ["a", "b"])
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: "a"))
    #expect(lanes.next(at: .zero) == .send(Self.id(1), lane: "b"))
    lanes.backOff(Self.id(1), lane: "b", until: .seconds(100), isServerDelay: true)
    lanes.backOff(Self.id(0), lane: "a", until: .seconds(10), isServerDelay: false)
    lanes.resumeAfterFetch()
    #expect(lanes.next(at: .zero) == .send(Self.id(0), lane: "a"))
    #expect(lanes.failures(in: "a") == 2)
    lanes.backOff(Self.id(0), lane: "a", until: .seconds(20), isServerDelay: false)
    lanes.resumeAfterFetch()
    #expect(lanes.next(at: .zero) == .wait(until: .seconds(20)))
    #expect(lanes.failures(in: "a") == 3)
    #expect(lanes.next(at: .seconds(20)) == .send(Self.id(0), lane: "a"))
    lanes.backOff(Self.id(0), lane: "a", until: .seconds(50), isServerDelay: false)
    lanes.resumeAfterFetch()
    #expect(lanes.next(at: .seconds(20)) == .send(Self.id(0), lane: "a"))
    lanes.backOff(Self.id(0), lane: "a", until: .seconds(60), isServerDelay: false)
    lanes.resumeAfterFetch()
    #expect(lanes.next(at: .seconds(20)) == .wait(until: .seconds(60)))
    // The app, or a change of the network, still ends the delay.
    lanes.retryNow()
    #expect(lanes.next(at: .seconds(20)) == .send(Self.id(0), lane: "a"))
    #expect(lanes.failures(in: "a") == 1)
    // The delay that the server named goes on.
    #expect(lanes.next(at: .seconds(20)) == .wait(until: .seconds(100)))
  }

  /// A naive model of the lanes: the waiting mutations and the one in flight, by lane.
  private struct Model {
    var waiting: [LaneID: [Int]] = [:]
    var inFlight: [LaneID: Int] = [:]
    /// The mutations that aren't durable yet.
    var undurable: Set<Int> = []
    /// The mutation of each lane that can't be read, if there is one.
    var held: [LaneID: Int] = [:]
    var isPaused = false
  }

  @Test(arguments: 0..<UInt64(Rounds.count(8, full: 30)))
  func `In random sequences of events, lanes send their mutations in order and drain`(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    // With one slot, outages occur, too.
    var lanes = MutationLanes(maximumInFlight: seed.isMultiple(of: 2) ? 3 : 1, slotTimeout: .seconds(5))
    var model = Model()
    var now = Duration.zero
    var lastNumber = 0
    let laneIDs: [LaneID] = [LaneID(userID: "0", orderingKey: "a"), "b", "c", "d", "e"]

    func sendAllReady() {
      while case .send(let id, let laneID) = lanes.next(at: now) {
        let number = Int(id.rawValue)!
        #expect(model.inFlight[laneID] == nil, "seed \(seed)")
        #expect(!model.isPaused, "seed \(seed)")
        #expect(model.waiting[laneID]?.first == number, "seed \(seed)")
        #expect(!model.undurable.contains(number), "seed \(seed)")
        #expect(model.held[laneID] != number, "seed \(seed)")
        model.waiting[laneID]?.removeFirst()
        model.inFlight[laneID] = number
      }
    }

    for _ in 0..<1000 {
      now += .seconds(Int.random(in: 0...1, using: &random))
      let laneID = laneIDs.randomElement(using: &random)!
      switch Int.random(in: 0..<15, using: &random) {
      case 0, 1, 2:
        lastNumber += 1
        let isDurable = Bool.random(using: &random)
        if !isDurable { model.undurable.insert(lastNumber) }
        model.waiting[laneID, default: []].append(lastNumber)
        lanes.append(Self.id(lastNumber), lane: laneID, userID: laneID.userID, isDurable: isDurable)
      case 3, 4:
        guard model.inFlight.removeValue(forKey: laneID) != nil else { continue }
        lanes.complete(lane: laneID)
      case 5:
        guard let number = model.inFlight.removeValue(forKey: laneID) else { continue }
        model.waiting[laneID, default: []].insert(number, at: 0)
        lanes.backOff(
          Self.id(number), lane: laneID, until: now + .seconds(3), isServerDelay: Bool.random(using: &random))
      case 6:
        guard let number = model.inFlight.removeValue(forKey: laneID) else { continue }
        model.waiting[laneID, default: []].insert(number, at: 0)
        lanes.release(Self.id(number), lane: laneID, needsSignIn: Bool.random(using: &random))
      case 7:
        guard let number = model.waiting[laneID]?.randomElement(using: &random) else { continue }
        model.waiting[laneID]?.removeAll { $0 == number }
        model.undurable.remove(number)
        if model.held[laneID] == number { model.held[laneID] = nil }
        lanes.remove(Self.id(number), lane: laneID)
      case 8:
        guard let number = model.undurable.min() else { continue }
        model.undurable.remove(number)
        let undurableLaneID = model.waiting.first { $0.value.contains(number) }!.key
        lanes.unblock(Self.id(number), lane: undurableLaneID)
      case 9:
        model.isPaused = true
        lanes.pause(.offline)
        let expectedIDs = laneIDs.flatMap { model.waiting[$0, default: []].map(String.init) }
        #expect(lanes.allWaiting.map(\.rawValue) == expectedIDs, "seed \(seed)")
      case 10: lanes.signedIn(userID: laneID.userID)
      case 11: lanes.retryNow()
      case 12: lanes.suspect([laneID])
      case 13:
        guard let number = model.waiting[laneID]?.last, model.held[laneID] == nil else { continue }
        // The last mutation of the lane is now behind one that can't be read.
        lastNumber += 1
        model.held[laneID] = lastNumber
        let count = model.waiting[laneID]!.count
        model.waiting[laneID]?.insert(lastNumber, at: count - 1)
        lanes.hold(Self.id(lastNumber), lane: laneID) { $0 == Self.id(number) }
      default:
        model.isPaused = false
        lanes.resume(.offline)
      }
      sendAllReady()
      #expect(
        laneIDs.allSatisfy { lanes.waiting(in: $0).map(\.rawValue) == model.waiting[$0, default: []].map(String.init) })
    }

    // Ends everything that keeps a mutation from being sent.
    for number in model.undurable.sorted() {
      lanes.unblock(Self.id(number), lane: model.waiting.first { $0.value.contains(number) }!.key)
    }
    for (laneID, number) in model.held {
      model.waiting[laneID]?.removeAll { $0 == number }
      lanes.remove(Self.id(number), lane: laneID)
    }
    (model.undurable, model.held, model.isPaused) = ([], [:], false)
    lanes.resume(.offline)
    lanes.signedIn(userID: "0")
    lanes.signedIn(userID: nil)
    now += .seconds(60)
    sendAllReady()
    while let laneID = model.inFlight.keys.min() {
      model.inFlight[laneID] = nil
      lanes.complete(lane: laneID)
      sendAllReady()
    }
    #expect(model.waiting.values.allSatisfy { $0.isEmpty }, "seed \(seed)")
    #expect(laneIDs.allSatisfy { lanes.isFree($0) }, "seed \(seed)")
  }
}

extension LaneID: ExpressibleByStringLiteral {
  /// Creates the id of a lane that belongs to no user.
  public init(stringLiteral orderingKey: String) { self.init(userID: nil, orderingKey: orderingKey) }
}
