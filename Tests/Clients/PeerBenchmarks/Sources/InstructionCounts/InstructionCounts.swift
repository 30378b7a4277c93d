#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A program that repeats one workload, for a tool that counts instructions.
///
/// Usage: `InstructionCounts WORKLOAD int|owned ITERATIONS`.
@main
struct InstructionCounts {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let iterations = Int(arguments[3]), iterations > 0 else {
      fail("usage: InstructionCounts WORKLOAD int|owned ITERATIONS")
    }
    let outcome =
      switch arguments[2] {
      case "int": perform(arguments[1], Workload<Int>(iterations: iterations))
      case "owned": perform(arguments[1], Workload<OwnedElement>(iterations: iterations))
      default: fail("Unknown element \(arguments[2]): use int or owned.")
      }
    guard outcome.isAsExpected else { fail("\(arguments[1]): the elements or subscribers aren't the expected ones.") }
    // The process exits without releasing the workload's objects, because that would be counted too.
    withExtendedLifetime(outcome) { exit(0) }
  }

  private static func perform<Element: CountedElement>(_ name: String, _ workload: Workload<Element>) -> Outcome {
    switch name {
    case "send-0": workload.send(laggingSubscribers: 0)
    case "send-1": workload.send(laggingSubscribers: 1)
    case "send-8": workload.send(laggingSubscribers: 8)
    case "replace": workload.replace()
    case "deliver-1": workload.deliver(subscribers: 1)
    case "deliver-8": workload.deliver(subscribers: 8)
    case "wake-1": workload.wake(subscribers: 1)
    case "wake-8": workload.wake(subscribers: 8)
    case "wake-limit": workload.wakeBareContinuation()
    case "subscribe": workload.subscribe()
    default: fail("Unknown workload \(name).")
    }
  }

  private static func fail(_ message: String) -> Never {
    print("InstructionCounts: \(message)")
    exit(1)
  }
}
