import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Holds locks by Redisson, by the line protocol of tests/drivers/README.md.
 *
 * <p>Redisson's owner is a client and a thread of it, so every owner here has a thread of its own, which does what it is asked in
 * that order. Verbs: open (node, cluster, watchdog_ms), acquire and try_acquire (name, kind, wait_ms; ttl_ms, or it is renewed), release,
 * force_release, inspect, close.
 */
public final class Driver {
  private static final Map<String, RedissonClient> CLIENTS = new ConcurrentHashMap<>();
  private static final Map<String, ExecutorService> OWNERS = new ConcurrentHashMap<>();

  public static void main(String[] arguments) throws IOException {
    send("-", "ready", Map.of("language", "java", "lacks", ""));
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      Request request = new Request(line);
      String owner = request.get("client", "") + " " + request.get("owner", "");
      OWNERS.computeIfAbsent(owner, name -> Executors.newSingleThreadExecutor()).execute(() -> answer(request));
    }
    System.exit(0);
  }

  private static void answer(Request request) {
    Map<String, String> fields = new LinkedHashMap<>();
    String word;
    try {
      word = serve(request, fields);
    } catch (IllegalMonitorStateException e) {
      word = "NOT_HELD";
      fields.put("message", String.valueOf(e.getMessage()));
    } catch (Exception e) {
      word = "FAILED";
      fields.put("message", e.toString());
    }
    send(request.id, word, fields);
  }

  private static String serve(Request request, Map<String, String> reply) throws InterruptedException {
    String client = request.get("client", "");
    switch (request.verb) {
      case "open":
        CLIENTS.put(client, open(request));
        return "OK";
      case "close":
        CLIENTS.get(client).shutdown();
        return "OK";
      default:
        return serve(request, lock(CLIENTS.get(client), request), reply);
    }
  }

  private static RedissonClient open(Request request) {
    Config config = new Config();
    config.setLockWatchdogTimeout(request.number("watchdog_ms", 30_000));
    String address = "redis://" + request.get("node", "");
    if (request.get("cluster", "").equals("true")) {
      config.useClusterServers().addNodeAddress(address);
    } else {
      config.useSingleServer().setAddress(address);
    }
    return Redisson.create(config);
  }

  private static RLock lock(RedissonClient client, Request request) {
    String name = request.get("name", "");
    switch (request.get("kind", "lock")) {
      case "lock":
        return client.getLock(name);
      case "spin":
        return client.getSpinLock(name);
      case "fair":
        return client.getFairLock(name);
      case "read":
        return client.getReadWriteLock(name).readLock();
      case "write":
        return client.getReadWriteLock(name).writeLock();
      default:
        throw new IllegalArgumentException("no kind " + request.get("kind", ""));
    }
  }

  private static String serve(Request request, RLock lock, Map<String, String> reply) throws InterruptedException {
    long ttl = request.number("ttl_ms", -1); // -1: Redisson renews it
    long wait = request.number("wait_ms", -1);
    switch (request.verb) {
      case "acquire":
        if (wait >= 0) {
          return lock.tryLock(wait, ttl, MILLISECONDS) ? "OK" : "TIMEOUT";
        }
        lock.lock(ttl, MILLISECONDS);
        return "OK";
      case "try_acquire":
        return (ttl < 0 ? lock.tryLock() : lock.tryLock(0, ttl, MILLISECONDS)) ? "OK" : "HELD";
      case "release":
        lock.unlock();
        return "OK";
      case "force_release":
        return lock.forceUnlock() ? "OK" : "NOT_HELD";
      case "inspect":
        reply.put("locked", String.valueOf(lock.isLocked()));
        reply.put("held", String.valueOf(lock.isHeldByCurrentThread()));
        reply.put("count", String.valueOf(lock.getHoldCount()));
        reply.put("left_ms", String.valueOf(lock.remainTimeToLive()));
        return "OK";
      default:
        throw new IllegalArgumentException("no verb " + request.verb);
    }
  }

  private static synchronized void send(String id, String word, Map<String, String> fields) {
    StringBuilder line = new StringBuilder(id).append(' ').append(word);
    fields.forEach((key, value) -> line.append(' ').append(key).append('=').append(URLEncoder.encode(value, UTF_8).replace("+", "%20")));
    System.out.println(line);
  }

  /** A line that the test has sent. */
  private static final class Request {
    final String id;
    final String verb;
    private final Map<String, String> fields = new HashMap<>();

    Request(String line) {
      String[] words = line.split(" ");
      id = words[0];
      verb = words[1];
      for (int i = 2; i < words.length; i++) {
        String[] field = words[i].split("=", 2);
        fields.put(field[0], URLDecoder.decode(field[1].replace("+", "%2B"), UTF_8));
      }
    }

    String get(String key, String otherwise) {
      return fields.getOrDefault(key, otherwise);
    }

    long number(String key, long otherwise) {
      return fields.containsKey(key) ? Long.parseLong(fields.get(key)) : otherwise;
    }
  }

  private Driver() {}
}
