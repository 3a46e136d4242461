-- save_turn: save the turn of a dialog in one step: its replies with the task of the update, and the state of the dialog
-- ARGV    id, token, checkpoint, tenant, channel, address, state, kept_ms:int
--         checkpoint: what is left of the turn, for the next attempt; state: "" for none
-- RETURNS 1, or 0 if the task was cancelled or another worker may have it: then nothing is saved
-- EVENTS  none
-- INVARIANT I8 an old token changes nothing

return function(id, token, checkpoint, tenant, channel, address, state, kept_ms)
  local task = Record.read(id)
  if not task or task.token ~= token or redis_call('HEXISTS', Key.progress(id), 'cancel') == 1 then return 0 end
  redis_call('HSET', Key.progress(id), 'checkpoint', checkpoint)
  local dialog = Key.dialog(tenant, channel, address)
  if state == '' then
    redis_call('DEL', dialog)
  else
    redis_call('SET', dialog, state, 'PX', kept_ms)
  end
  return 1
end
