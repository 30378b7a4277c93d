internal import Foundation

/// Measures the durable stores beside GRDB.
@main
struct StoreBenchmarks {
  static func main() async {
    do {
      let options = try Options(CommandLine.arguments.dropFirst())
      let workspace = try Workspace(in: options.folder)
      do {
        try await compare(options, in: workspace)
        try workspace.remove()
      } catch {
        try workspace.remove()
        throw error
      }
    } catch {
      fail(error)
    }
  }

  /// Ends the program with a message on the standard error.
  static func fail(_ error: any Error) -> Never {
    FileHandle.standardError.write(Data("StoreBenchmarks: \(error)\n".utf8))
    exit(1)
  }

  private static func compare(_ options: Options, in workspace: Workspace) async throws {
    var report = Report(options)
    var runner = Runner(options)
    if !options.printsJSON { show(report.header) }
    for row in options.rows {
      for comparison in try await row.comparisons(options, workspace) {
        let result = try await runner.run(comparison)
        report.comparisons.append(result)
        if !options.printsJSON { show("\n\(Table(result))") }
      }
    }
    if options.scale == 1 { report.goals = Goal.all(in: report.comparisons) }
    if options.printsJSON {
      show(try report.json())
    } else if let goals = report.goals {
      show("\n" + goals.map(\.description).joined(separator: "\n"))
    }
  }

  /// Prints at once, also into a pipe.
  private static func show(_ text: String) {
    FileHandle.standardOutput.write(Data("\(text)\n".utf8))
  }
}
