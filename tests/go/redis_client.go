// Drives go-redis against the resp door and prints what it saw as JSON.
//
//	go run . ADDRESS PROTOCOL [PASSWORD]
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	protocol, err := strconv.Atoi(os.Args[2])
	check(err)
	options := &redis.Options{Addr: os.Args[1], Protocol: protocol, ClientName: "weir-go"}
	if len(os.Args) > 3 {
		options.Password = os.Args[3]
	}
	client := redis.NewClient(options)
	defer client.Close()

	seen := map[string]any{}
	seen["ping"], err = client.Ping(ctx).Result()
	check(err)
	seen["name"], err = client.ClientGetName(ctx).Result()
	check(err)
	seen["throttle"], err = throttle(ctx, client, "go:one")
	check(err)
	seen["check"], err = client.Do(ctx, "WEIR.CHECK", "client", "go", "COST", "requests", 2).Text()
	check(err)

	pipeline := client.Pipeline()
	var replies []*redis.Cmd
	for i := 0; i < 5; i++ {
		replies = append(replies, pipeline.Do(ctx, "CL.THROTTLE", "go:many", 2, 1, 3600))
	}
	_, err = pipeline.Exec(ctx)
	check(err)
	var limited []int64
	for _, reply := range replies {
		numbers, err := reply.Int64Slice()
		check(err)
		limited = append(limited, numbers[0])
	}
	seen["pipeline"] = limited
	seen["error"] = client.Do(ctx, "CL.THROTTLE", "go:one", 0, 0, 1).Err().Error()
	check(json.NewEncoder(os.Stdout).Encode(seen))
}

func throttle(ctx context.Context, client *redis.Client, key string) ([]int64, error) {
	return client.Do(ctx, "CL.THROTTLE", key, 15, 30, 60).Int64Slice()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
