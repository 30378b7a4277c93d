// swift-tools-version: 6.2

import PackageDescription

let features: [Target.Dependency] = [
  .product(name: "DataStore", package: "Moments"),
  .product(name: "GraphQLClient", package: "Moments"),
  .product(name: "Moments", package: "Moments"),
  .product(name: "Multicast", package: "Moments"),
  .product(name: "Repository", package: "Moments"),
  .product(name: "SignIn", package: "Moments"),
  .product(name: "Todo", package: "Moments"),
]

let testKits: [Target.Dependency] = [
  .product(name: "DataStoreTesting", package: "Moments"),
  .product(name: "MomentsTesting", package: "Moments"),
  .product(name: "MulticastTesting", package: "Moments"),
  .product(name: "RepositoryTesting", package: "Moments"),
]

let package = Package(
  name: "Consumer",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "Moments", path: "../../..")],
  targets: [
    .executableTarget(name: "Consumer", dependencies: features),
    // The settings of a new Xcode project: code belongs to the main actor unless it says otherwise.
    .executableTarget(
      name: "MainActorConsumer",
      dependencies: features + testKits,
      swiftSettings: [
        .defaultIsolation(MainActor.self),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .enableUpcomingFeature("InferIsolatedConformances"),
      ]),
  ]
)
