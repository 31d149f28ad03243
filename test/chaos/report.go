package main

func writeReport() error { return nil }
