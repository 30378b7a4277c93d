package import Foundation

/// Removes a folder in which a store may still be renaming files.
///
/// - Throws: The error of the last of eleven attempts.
package func removeFolder(at url: URL) throws {
  for _ in 0..<10 {
    do {
      return try FileManager.default.removeItem(at: url)
    } catch {
      // A listed file may have been renamed in the meantime.
    }
  }
  try FileManager.default.removeItem(at: url)
}
