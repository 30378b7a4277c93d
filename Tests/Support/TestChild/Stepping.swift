internal import DataStore
internal import Foundation
internal import Multicast
internal import Repository
internal import Synchronization

/// Steps of a writer in several lanes, made by one of several processes on a store.
///
/// Each is reported by `durable LANE NUMBER` when it is durable, and by `ended LANE NUMBER RESULT` when its call has
/// returned.
extension TestChild {
  private typealias Steppers = SyncedRepository<StepsSource>

  private struct StepsSource: MutableSource {
    let server: StepsServer
    let name = "steps"

    static var empty: Steps? { Steps() }

    func fetch(_ key: String) async -> Steps { Steps(last: await server.steps(of: key)) }

    func send(_ mutation: Step, to key: String, id: MutationID) async -> MutationReply<Steps> {
      await server.take(mutation, key, id)
    }
  }

  private static let lanes = ["0", "1", "2", "3"]

  /// Makes steps in all lanes until its input ends, waits until all processes' are made, and says whether it shows them.
  static func takeSteps(as writer: String, in place: URL) async throws {
    let server = StepsServer(beside: place)
    let steps = Steppers(StepsSource(server: server), store: open(place))
    let inputEnd = InputEnd()
    await withTaskGroup { group in
      for lane in lanes { group.addTask { await takeSteps(as: writer, lane, by: steps, until: inputEnd) } }
    }
    try await steps.waitForPendingMutations()
    for lane in lanes {
      // The states, because a value that shows a step before the server has it doesn't come a second time.
      for await state in steps.states(of: lane) where state.value?.last == (await server.steps(of: lane)) { break }
      say("agrees \(lane)")
    }
  }

  /// Whether the standard input has ended.
  private final class InputEnd: Sendable {
    private let hasCome = Atomic(false)

    init() {
      Thread.detachNewThread {
        // What comes before the end says nothing.
        _ = FileHandle.standardInput.readDataToEndOfFile()
        self.hasCome.store(true, ordering: .relaxed)
      }
    }

    var value: Bool { hasCome.load(ordering: .relaxed) }
  }

  /// Makes steps, the next one as soon as one is durable, with at most four calls in progress.
  private static func takeSteps(
    as writer: String, _ lane: String, by steps: Steppers, until inputEnd: InputEnd
  ) async {
    let events = steps.events.subscribe()
    await withTaskGroup(of: Void.self) { group in
      var number = 0
      while !inputEnd.value {
        number += 1
        if number > 4 { await group.next() }
        group.addTask { [number] in
          let result: String
          do {
            result = "\(try await steps.perform(Step(writer: writer, number: number), on: lane))"
          } catch {
            result = "\(error)"
          }
          say("ended \(lane) \(number) \(result)")
        }
        for await event in events {
          guard case .mutationEnqueued(_, lane) = event else { continue }
          say("durable \(lane) \(number)")
          break
        }
      }
    }
  }
}
