module github.com/libredlock/libredlock

go 1.26
