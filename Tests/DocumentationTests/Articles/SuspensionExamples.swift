import DataStore

/// The code of `Suspension.md`, copied unchanged so that the compiler checks it.
enum SuspensionExamples {
  static func suspendAndResume(_ store: some KeyValueStore) async {
    // The app goes to the background:
    await store.suspend()

    // The app returns to the foreground:
    await store.resume()
  }
}
