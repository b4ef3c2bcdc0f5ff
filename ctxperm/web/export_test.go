package web

// CheckAddress is the check of the dialler.
var CheckAddress = checkAddress
