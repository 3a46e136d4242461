-- import_lock: while a file is imported into the directory of a tenant, its checks must stay true: all other writes are refused

local function import_runs(tenant) return redis.call('EXISTS', import_key(tenant)) == 1 end
