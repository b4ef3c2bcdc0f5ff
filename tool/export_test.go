package tool

// OperationKey makes the key of a call reachable for its golden vectors.
var OperationKey = operationKey
