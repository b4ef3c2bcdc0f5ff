package web

// CheckAddress is what the dialler asks.
var CheckAddress = checkAddress
