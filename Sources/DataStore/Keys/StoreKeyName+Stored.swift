internal import Foundation

extension StoreKeyName {
  /// Returns the key of the value that is stored under an encoded name.
  ///
  /// If the name doesn't contain the id, the value is read for it.
  ///
  /// - Returns: `nil` if no key encodes to the name, or if the id is needed and nothing is stored under the name.
  /// - Throws: ``StoreError/readFailed(_:)``, unless the error concerns only this value. Then the result names the
  ///   value by its digest.
  static func stored(
    under encodedName: String, in backend: inout some StoreBackend
  ) throws(StoreError) -> StoreKeyName? {
    if let key = StoreKeyName(encoded: encodedName) { return key }
    guard let name = LongKeyName(encodedName) else { return nil }
    do throws(StoreError) {
      return try backend.read(encodedName).map(name.key)
    } catch {
      guard error.concernsOneEntry else { throw error }
      return name.key(of: Data())
    }
  }
}
