package import Foundation

/// Removes a folder in which a store may still be moving a file.
///
/// - Throws: What the last of some attempts throws.
package func removeFolder(at url: URL) throws {
  for _ in 0..<10 {
    do {
      return try FileManager.default.removeItem(at: url)
    } catch {
      // A file that was listed may have another name by now.
    }
  }
  try FileManager.default.removeItem(at: url)
}
